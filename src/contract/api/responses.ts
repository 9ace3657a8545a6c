import { defineRoutes } from './route.ts';

export const responsesRoutes = defineRoutes({});
