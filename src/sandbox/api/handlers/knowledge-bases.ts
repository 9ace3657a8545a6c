import type { knowledgeBasesRoutes } from '../../../contract/api/knowledge-bases.ts';
import type { Handlers } from '../request.ts';

export const knowledgeBasesHandlers: Handlers<keyof typeof knowledgeBasesRoutes> = {};
