import type { accountsRoutes } from '../../../contract/api/accounts.ts';
import type { Handlers } from '../request.ts';

export const accountsHandlers: Handlers<keyof typeof accountsRoutes> = {};
