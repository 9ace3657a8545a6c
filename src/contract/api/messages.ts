import { defineRoutes } from './route.ts';

export const messagesRoutes = defineRoutes({});
