import { defineRoutes } from './route.ts';

export const knowledgeBasesRoutes = defineRoutes({});
