import type { messagesRoutes } from '../../../contract/api/messages.ts';
import type { Handlers } from '../request.ts';

export const messagesHandlers: Handlers<keyof typeof messagesRoutes> = {};
