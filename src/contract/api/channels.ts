import { defineRoutes } from './route.ts';

export const channelsRoutes = defineRoutes({});
