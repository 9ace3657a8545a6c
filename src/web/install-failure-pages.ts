import type { InstallError, InstallFailure } from '../install/install-types.ts';
import { WebError, type WebErrorOptions } from './web-error.ts';

/** The service may end an older grant of a company by a newer one, whether or not that arrives. */
const MAY_BE_ENDED =
  'If the service had authorized the app by then, it may have ended an earlier authorization of the company by that: the page of the company says so then, and an install repairs it.';

const OUTCOMES = {
  unchanged: 'Nothing was stored. Of a company that was installed before, the app has changed nothing.',
  grantMissed: `Nothing was stored. ${MAY_BE_ENDED}`,
  cutOff: MAY_BE_ENDED,
  notThis:
    'By this request nothing was stored or changed. If the way back was used before, by a second click or a reload, what came of that may have been stored: start again, and the page of the company shows how it stands.',
  dropped: 'The app has given up what the service had granted.',
  kept: 'The app keeps what the service has granted, and stores it as soon as it can, unless it is stopped before.',
} as const;

type Outcome = keyof typeof OUTCOMES;

interface Explanation {
  status: number;
  title: string;
  advice: string;
  outcome?: Outcome;
}

const AGAIN = 'Start the install again from the front page.';

const EXPLANATIONS: Record<InstallFailure, Explanation> = {
  state: {
    status: 400,
    title: 'This install cannot be finished',
    advice:
      'The way back from the consent page is good for 10 minutes, once, in the browser where it began. Start again.',
    outcome: 'notThis',
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
    outcome: 'grantMissed',
  },
  trouble: {
    status: 502,
    title: 'The service did not answer as it should',
    advice:
      'Wait a minute, then start again. If it stays, tell the people who run the app the request id below.',
    outcome: 'grantMissed',
  },
  busy: {
    status: 503,
    title: 'The service takes no more requests for now',
    advice:
      'It takes so many in a time, and they are used up. Wait as long as it asks, or a minute where it does not say, then start again.',
    outcome: 'grantMissed',
  },
  stopping: {
    status: 503,
    title: 'The app is being stopped',
    advice: 'Wait a minute, then start again.',
  },
  cut_off: {
    status: 503,
    title: 'The app was stopped before the install was done',
    advice: 'Wait a minute, then start again.',
    outcome: 'cutOff',
  },
  unwritten: {
    status: 503,
    title: 'Authorized, but not stored yet',
    advice:
      'Wait a minute, then start again to see the company here. If it stays, tell the people who run the app the request id below.',
    outcome: 'kept',
  },
  unstored: {
    status: 503,
    title: 'Authorized, but not stored',
    advice:
      'Tell the people who run the app the request id below: it takes no installs until they have repaired it.',
    outcome: 'grantMissed',
  },
  disconnected: {
    status: 409,
    title: 'The company was disconnected meanwhile',
    advice: 'If it is to be installed all the same, start again.',
    outcome: 'dropped',
  },
  refused: { status: 400, title: 'The service refused the install', advice: AGAIN },
  malformed: { status: 400, title: 'This address makes no sense', advice: AGAIN },
};

/** The error page for an install that failed: what happened, what became of what was there before, what to do. */
export class InstallFailedError extends WebError {
  /** What was stored, and what may have changed. */
  readonly outcome: string;

  constructor(
    status: number,
    title: string,
    message: string,
    { outcome = 'unchanged', ...options }: WebErrorOptions & { outcome?: Outcome | undefined },
  ) {
    super(status, title, message, options);
    this.outcome = OUTCOMES[outcome];
  }
}

/** Chooses the page for an install's failure. */
export function explainInstallFailure(error: InstallError): InstallFailedError {
  const { status, title, advice, outcome } = EXPLANATIONS[error.failure];
  return new InstallFailedError(status, title, error.message, { advice, outcome, cause: error });
}
