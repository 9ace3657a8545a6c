import { defineRoutes } from './route.ts';

export const inboxesRoutes = defineRoutes({});
