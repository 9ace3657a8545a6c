import { type ErrorKind, SERVICE_OUTAGES } from '../../store/states.ts';

const HELP = 'If this continues, write to {support}.';

/** What each kind of error means for an administrator, and the one thing to do. */
const MESSAGES: Record<ErrorKind, string> = {
  unreachable: `The service cannot be reached.`,
  timeout: `The service did not answer in time.`,
  bad_answer: `The service sent an answer that the app cannot read. ${HELP}`,
  refused:
    'The service refuses this request. Authorize the app again as an administrator. If that does not help, write to {support}.',
  rate_limited: 'The service asked the app to slow down. The sync goes on by itself.',
  server_error: `The service has an error of its own.`,
  reauthorize: 'The service no longer accepts the app’s authorization. Nothing was deleted.',
  credentials: 'The service no longer knows this app. Write to {support}: they have to repair it.',
  key_missing: 'The app cannot decrypt its authorization. Write to {support}: they have to repair it.',
  handler: `The app could not process a change. ${HELP}`,
  handler_ended: `A change stopped the app. ${HELP}`,
  store: `The app cannot use its database, so nothing new is copied. Nothing is lost, and the app goes on by itself. ${HELP}`,
  redis: `The app cannot use its queue, so nothing new is copied. Nothing is lost, and the app goes on by itself. ${HELP}`,
  internal: `The app made a mistake. ${HELP}`,
};

/** @param support where administrators find help */
export function errorMessage(kind: ErrorKind, support: string): string {
  return MESSAGES[kind].replace('{support}', support);
}

/** Whether an error usually passes within minutes. */
export function isPassing(kind: ErrorKind | null): boolean {
  return SERVICE_OUTAGES.some((outage) => outage === kind);
}
