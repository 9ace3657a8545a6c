import { ServiceError } from '../client/errors.ts';

/** What has been granted is kept by the process that asked for it. */
export const NOT_WRITTEN = new ServiceError(
  'wait',
  'A new access token has come, but the app cannot write it yet: its database is in trouble. It tries on by itself.',
);

/** What was to be renewed is not the newest any more. */
export const CHANGED = new ServiceError('wait', 'Another grant has come meanwhile.');

/** No refresh is begun any more. */
export const ENDS = new ServiceError(
  'wait',
  'The app is being stopped: the access token is renewed when it runs again.',
);
