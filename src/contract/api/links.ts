import { defineRoutes } from './route.ts';

export const linksRoutes = defineRoutes({});
