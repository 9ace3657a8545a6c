import { defineRoutes } from './route.ts';

export const accountsRoutes = defineRoutes({});
