import type { analyticsRoutes } from '../../../contract/api/analytics.ts';
import type { Handlers } from '../request.ts';

export const analyticsHandlers: Handlers<keyof typeof analyticsRoutes> = {};
