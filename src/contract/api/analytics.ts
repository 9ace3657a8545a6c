import { defineRoutes } from './route.ts';

export const analyticsRoutes = defineRoutes({});
