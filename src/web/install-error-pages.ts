import type { InstallError, InstallErrorKind } from '../auth/install-errors.ts';
import { WebError } from './web-error.ts';

const NOTHING_CHANGED = 'Nothing was stored, and no company that was installed before has changed.';

/** The service may end an older grant of a company by a newer one, whether or not that arrives. */
const MAY_HAVE_ENDED =
  'Nothing was stored. If the company was installed before, the service may have ended that authorization. Its page says so then, and an install repairs it.';

const AGAIN = 'Start the install again from the front page.';

const PAGES: Record<InstallErrorKind, { status: number; title: string; advice: string; outcome?: string }> = {
  state: {
    status: 400,
    title: 'This install cannot be finished',
    advice:
      'The way back from the consent page is good for 10 minutes, once, in the browser where it began. Start again.',
    outcome: 'This request has stored and changed nothing.',
  },
  denied: {
    status: 403,
    title: 'The install was declined',
    advice: 'If you did not mean to decline it, start again and approve it at the consent page.',
  },
  not_administrator: {
    status: 403,
    title: 'An administrator is needed',
    advice: 'Ask an administrator of your company to install the app, or start again as one.',
  },
  code: {
    status: 400,
    title: 'The authorization has expired',
    advice: 'The code of the service is good once and for a short time. Start again; it takes a minute.',
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
    outcome: MAY_HAVE_ENDED,
  },
  trouble: {
    status: 502,
    title: 'The service did not answer as it should',
    advice:
      'Wait a minute, then start again. If it stays, tell the people who run the app the request id below.',
    outcome: MAY_HAVE_ENDED,
  },
  busy: {
    status: 503,
    title: 'The service takes no more requests for now',
    advice: 'Wait as long as it asks, or a minute if it does not say. Then start again.',
    outcome: MAY_HAVE_ENDED,
  },
  logged_out: {
    status: 409,
    title: 'Connected, but not shown here',
    advice: 'Install the app again to see the company in this browser.',
    outcome: 'The company is connected, and its sync is on its way.',
  },
  refused: { status: 400, title: 'The service refused the install', advice: AGAIN },
  malformed: { status: 400, title: 'This address makes no sense', advice: AGAIN },
  store: {
    status: 503,
    title: 'Authorized, but not stored',
    advice:
      'Wait a minute, then start again. If it stays, tell the people who run the app the request id below.',
    outcome: MAY_HAVE_ENDED,
  },
};

/** The error page for an install that failed: what happened, what it means for the data, what to do. */
export class InstallErrorPage extends WebError {
  /** What was stored, and what may have changed. */
  readonly outcome: string;

  constructor(error: InstallError) {
    const { status, title, advice, outcome = NOTHING_CHANGED } = PAGES[error.kind];
    super(status, title, error.message, { advice, cause: error });
    this.outcome = outcome;
  }
}
