import { defineRoutes } from './route.ts';

export const applicationsRoutes = defineRoutes({});
