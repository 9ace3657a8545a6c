import type { channelsRoutes } from '../../../contract/api/channels.ts';
import type { Handlers } from '../request.ts';

export const channelsHandlers: Handlers<keyof typeof channelsRoutes> = {};
