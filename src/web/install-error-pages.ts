import type { InstallError, InstallErrorKind } from '../auth/install-errors.ts';
import { WebError } from './web-error.ts';

const NOTHING_CHANGED = 'Nothing was stored. Companies that were installed before have not changed.';

/** The service may have ended the company's older grant, even if the new one did not arrive. */
const MAY_HAVE_ENDED =
  'Nothing was stored. If the company was installed before and its page asks for a new authorization, start again from there.';

interface Page {
  status: number;
  title: string;
  /** Replaces the error's own message, which may name internals. */
  message?: string;
  advice: string;
  outcome?: string;
  needsHelp?: boolean;
}

const PAGES: Record<InstallErrorKind, Page> = {
  state: {
    status: 400,
    title: 'This install cannot be finished',
    message: 'This browser did not start the installation that this answer belongs to.',
    advice: 'A consent page works once, for 10 minutes, in the browser that opened it. Start again.',
    outcome: 'This request stored nothing.',
  },
  denied: {
    status: 403,
    title: 'The install was declined',
    advice: 'To install the app after all, start again and approve it.',
  },
  not_administrator: {
    status: 403,
    title: 'An administrator is needed',
    message: 'The service lets only administrators authorize an app.',
    advice: 'Ask an administrator of your company to install the app.',
  },
  code: {
    status: 400,
    title: 'The authorization has expired',
    message: 'The service’s answer works once, for a short time.',
    advice: 'Start again; it takes a minute.',
  },
  credentials: {
    status: 502,
    title: 'The service does not know this app',
    message: 'The app is not registered correctly at the service. Starting again does not help.',
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
    title: 'The service takes no requests right now',
    advice: 'Wait a minute, or as long as the service asks. Then start again.',
    outcome: MAY_HAVE_ENDED,
  },
  logged_out: {
    status: 409,
    title: 'Connected, but not shown here',
    message: 'This browser logged out during the installation.',
    advice: 'Sign in to see the company in this browser.',
    outcome: 'The company is connected, and its sync has started.',
  },
  refused: {
    status: 400,
    title: 'The service refused the install',
    advice: 'Start the install again from the front page.',
  },
  malformed: {
    status: 400,
    title: 'This address is not valid',
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

/** The address that starts an install and then leads back to a page. */
export function startAddress(installUrl: string, returnTo: string | null): string {
  return returnTo === null ? installUrl : `${installUrl}?${new URLSearchParams({ return_to: returnTo })}`;
}

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
