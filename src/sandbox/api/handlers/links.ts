import type { linksRoutes } from '../../../contract/api/links.ts';
import type { Handlers } from '../request.ts';

export const linksHandlers: Handlers<keyof typeof linksRoutes> = {};
