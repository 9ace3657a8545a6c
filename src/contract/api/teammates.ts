import { defineRoutes } from './route.ts';

export const teammatesRoutes = defineRoutes({});
