import type { ErrorKind } from '../../store/states.ts';

/** What each kind of error means for an administrator, and what to do about it. */
export const ERROR_MESSAGES: Record<ErrorKind, string> = {
  unreachable: 'The app cannot reach the service. There is nothing to do: the app tries again.',
  timeout: 'The service did not answer in time. There is nothing to do: the app tries again.',
  bad_answer: 'The app cannot read the service’s answer. If this stays, tell the people who run the app.',
  refused:
    'The service refuses the app’s request. Authorize the app again as an administrator. If that does not help, tell the people who run the app.',
  rate_limited: 'The service asked the app to slow down. There is nothing to do: the app goes on by itself.',
  server_error: 'The service failed. There is nothing to do: the app tries again.',
  reauthorize: 'The service does not accept the app’s authorization any more. Authorize the app again.',
  credentials:
    'The service does not accept the app’s own credentials. The people who run the app have to correct them; there is nothing for you to do.',
  key_missing:
    'The app cannot decrypt its tokens. The people who run the app have to add the missing key; there is nothing for you to do.',
  handler: 'The handler failed. The people who run the app have to look.',
  store: 'The app cannot use its database. If this stays, tell the people who run the app.',
  redis: 'The app cannot reach Redis. If this stays, tell the people who run the app.',
  internal: 'The app made a mistake. If this stays, tell the people who run the app.',
};
