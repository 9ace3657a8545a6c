import type { inboxesRoutes } from '../../../contract/api/inboxes.ts';
import type { Handlers } from '../request.ts';

export const inboxesHandlers: Handlers<keyof typeof inboxesRoutes> = {};
