import type { InstallError, InstallFailure } from '../install/install-types.ts';
import { WebError } from './web-error.ts';

interface Explanation {
  status: number;
  title: string;
  advice: string;
}

const AGAIN = 'Start the install again from the front page.';

const EXPLANATIONS: Record<InstallFailure, Explanation> = {
  state: {
    status: 400,
    title: 'This install cannot be finished',
    advice:
      'The way back from the consent page is good for 10 minutes, once, in the browser where it began. Start again.',
  },
  denied: {
    status: 403,
    title: 'The install was declined',
    advice: 'If that was a slip, start again and approve it at the consent page.',
  },
  not_administrator: {
    status: 403,
    title: 'An administrator is needed',
    advice: 'Ask an administrator of your company to install the app, or start again as one.',
  },
  code: {
    status: 400,
    title: 'The authorization has expired',
    advice:
      'The code that the service gave is good once and for a short time. Start again; it takes a minute.',
  },
  credentials: {
    status: 502,
    title: 'The service does not know this app',
    advice:
      'Starting again will not help. The people who run this app have to check its client id and secret.',
  },
  unreachable: {
    status: 502,
    title: 'The service cannot be reached',
    advice: 'Wait a minute, then start again.',
  },
  trouble: {
    status: 502,
    title: 'The service did not answer as it should',
    advice:
      'Wait a minute, then start again. If it stays, tell the people who run the app the request id below.',
  },
  busy: {
    status: 503,
    title: 'The service takes no more requests for now',
    advice:
      'It takes so many a minute for each company, and they are used up. Wait as long as it asks, then start again.',
  },
  refused: { status: 400, title: 'The service refused the install', advice: AGAIN },
  malformed: { status: 400, title: 'This address makes no sense', advice: AGAIN },
};

/** The error page for an install that failed: what happened, that nothing was stored, what to do. */
export class InstallFailedError extends WebError {}

/** Chooses the page for an install's failure. */
export function explainInstallFailure(error: InstallError): InstallFailedError {
  const { status, title, advice } = EXPLANATIONS[error.failure];
  return new InstallFailedError(status, title, error.message, { advice, cause: error });
}
