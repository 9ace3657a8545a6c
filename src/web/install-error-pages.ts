import type { InstallError, InstallErrorKind } from '../auth/install-errors.ts';
import { WebError } from './web-error.ts';

const NOTHING_CHANGED = 'Nothing was stored, and no company that was installed before has changed.';

/** The service may end an older grant of a company by a newer one, whether or not that arrives. */
const MAY_HAVE_ENDED =
  'Nothing was stored. If the company was installed before and its page asks for a new authorization, start again from there.';

/** What each page says: what happened, what to do, and what it means for the data. */
interface Page {
  status: number;
  title: string;
  /** In place of the error's own message, which may name what is inside of the app. */
  message?: string;
  advice: string;
  outcome?: string;
  needsHelp?: boolean;
}

const PAGES: Record<InstallErrorKind, Page> = {
  state: {
    status: 400,
    title: 'This install cannot be finished',
    message: 'This answer does not belong to an installation that this browser has started.',
    advice: 'The consent page is good for 10 minutes, once, in the browser where it was opened. Start again.',
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
    message: 'The service lets only administrators authorize an app.',
    advice: 'Ask an administrator of your company to install the app, or start again as one.',
  },
  code: {
    status: 400,
    title: 'The authorization has expired',
    message: 'The service’s answer is good once and for a short time.',
    advice: 'Start again; it takes a minute.',
  },
  credentials: {
    status: 502,
    title: 'The service does not know this app',
    message: 'The app is not set up right at the service. Starting again will not help.',
    advice: 'We have to correct it.',
    needsHelp: true,
  },
  unreachable: {
    status: 502,
    title: 'The service cannot be reached',
    message: 'The service did not answer the app.',
    advice: 'Wait a minute, then start again.',
    outcome: MAY_HAVE_ENDED,
  },
  trouble: {
    status: 502,
    title: 'The service did not answer as it should',
    message: 'The service sent an answer that the app cannot use.',
    advice: 'Wait a minute, then start again.',
    outcome: MAY_HAVE_ENDED,
    needsHelp: true,
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
    message: 'This browser has logged out during the installation.',
    advice: 'Sign in to see the company in this browser.',
    outcome: 'The company is connected, and its sync is on its way.',
  },
  refused: {
    status: 400,
    title: 'The service refused the install',
    advice: 'Start the install again from the front page.',
  },
  malformed: {
    status: 400,
    title: 'This address makes no sense',
    advice: 'Start the install again from the front page.',
  },
  store: {
    status: 503,
    title: 'Authorized, but not stored',
    message: 'The app could not store the authorization.',
    advice: 'Wait a minute, then start again.',
    outcome: MAY_HAVE_ENDED,
    needsHelp: true,
  },
};

/** Where an install begins that leads back to a page of the app. */
export function startAddress(installUrl: string, returnTo: string | null): string {
  return returnTo === null ? installUrl : `${installUrl}?${new URLSearchParams({ return_to: returnTo })}`;
}

/** The error page for an install that failed. */
export class InstallErrorPage extends WebError {
  /** What was stored, and what may have changed. */
  readonly outcome: string;

  /** @param installUrl where to start again */
  constructor(error: InstallError, installUrl: string) {
    const { status, title, message = error.message, outcome = NOTHING_CHANGED, ...rest } = PAGES[error.kind];
    super(status, title, message, {
      ...rest,
      cause: error,
      links: [{ address: startAddress(installUrl, error.returnTo), text: 'Start again' }],
    });
    this.outcome = outcome;
  }
}
