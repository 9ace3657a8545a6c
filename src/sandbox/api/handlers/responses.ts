import type { responsesRoutes } from '../../../contract/api/responses.ts';
import type { Handlers } from '../request.ts';

export const responsesHandlers: Handlers<keyof typeof responsesRoutes> = {};
