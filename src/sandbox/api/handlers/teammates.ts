import type { teammatesRoutes } from '../../../contract/api/teammates.ts';
import type { Handlers } from '../request.ts';

export const teammatesHandlers: Handlers<keyof typeof teammatesRoutes> = {};
