import type { applicationsRoutes } from '../../../contract/api/applications.ts';
import type { Handlers } from '../request.ts';

export const applicationsHandlers: Handlers<keyof typeof applicationsRoutes> = {};
