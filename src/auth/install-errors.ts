import { redact } from '../runtime/redaction.ts';
import { TokenRequestError } from './oauth-client.ts';

/** Why an install ended without an instance; each has a page of its own. */
export type InstallErrorKind =
  /** The state is missing, unknown, used, expired, or from another browser: nothing was sent to the service. */
  | 'state'
  /** The person said no at the consent page. */
  | 'denied'
  /** The service wants an administrator. */
  | 'not_administrator'
  /** The code has expired, was used before, or is not for this app. */
  | 'code'
  /** The service refused the client id or secret. */
  | 'credentials'
  | 'unreachable'
  /** The service answered nonsense or 5xx. */
  | 'trouble'
  /** The service is asked too often (429). */
  | 'busy'
  /** The service named another error. */
  | 'refused'
  /** The request itself makes no sense: no code, repeated or oversized parameters. */
  | 'malformed'
  /** The grant has come, and the database did not take it. */
  | 'store'
  /** The company is connected, and the browser does not see it. */
  | 'logged_out';

/** An install that failed. The kind chooses the page; the message is plain text for an administrator. */
export class InstallError extends Error {
  readonly kind: InstallErrorKind;
  /** The path of the app that the browser wanted to see after the install. */
  returnTo: string | null = null;

  constructor(kind: InstallErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'InstallError';
    this.kind = kind;
  }
}

/** How much of the service's own words a message repeats, in characters; and how much is read. */
const LONGEST_QUOTE = 200;
const LONGEST_READ = 1_000;

/**
 * Words that want an administrator (Authentication, 3). "The administrator declined" and "contact your administrator" do
 * not: they may go with any refusal.
 */
const WANTS_ADMINISTRATOR = [
  /\bonly\b[^.]*\badmin/i,
  /\b(?:must|needs? to|ha(?:s|ve) to) be\b[^.]*\badmin/i,
  /\b(?:needs?|requires?|lacks?) (?!to\b)(?:\w+ ){0,3}admin/i,
  /\b(?:restricted|reserved|limited) (?:to|for) (?:\w+ ){0,3}admin/i,
  /\badmin(?:istrator)?s? only\b/i,
  /\badmin[^.]*\b(?:needed|required|necessary)\b/i,
  /(?:\bnot|n['’]t|\bnon)[ -](?:\w+ ){0,2}admin/i,
];

/** Errors that may be for want of a role: those of RFC 6749, section 4.1.2.1, and their names elsewhere. */
const MAY_WANT_A_ROLE =
  /^(?:access_denied|unauthorized_(?:client|user)|forbidden|not_a(?:uthorized|llowed)|permission_denied|insufficient_\w+)$/;

/** Refusals of the app's own request, whatever the person's role (RFC 6749, section 5.2). */
const OF_THE_APP: ReadonlySet<string> = new Set([
  'invalid_client',
  'invalid_request',
  'unsupported_grant_type',
  'invalid_scope',
]);

function wantsAdministrator(words: string | null | undefined): boolean {
  return WANTS_ADMINISTRATOR.some((pattern) => pattern.test(words?.slice(0, LONGEST_READ) ?? ''));
}

function administratorNeeded(cause?: unknown): InstallError {
  return new InstallError('not_administrator', 'The service lets only administrators authorize an app.', {
    cause,
  });
}

function quote(words: string): string {
  const hidden = redact(words);
  return hidden.length > LONGEST_QUOTE ? `${hidden.slice(0, LONGEST_QUOTE)}…` : hidden;
}

/**
 * What the service answered at the authorize route instead of a code (RFC 6749, section 4.1.2.1).
 *
 * @param error the callback's `error`
 * @param description its `error_description`, in the service's words
 */
export function authorizeError(error: string, description: string | null): InstallError {
  if (wantsAdministrator(error.replaceAll('_', ' '))) return administratorNeeded();
  if (MAY_WANT_A_ROLE.test(error) && wantsAdministrator(description)) return administratorNeeded();
  if (error === 'access_denied') {
    const why = description ? ` It says: ${quote(description)}` : '';
    return new InstallError('denied', `The authorization was declined at the service.${why}`);
  }
  const words = description === null ? error : `${error}: ${description}`;
  return new InstallError('refused', `The service answered with an error: ${quote(words)}`);
}

/** How long the service asks to wait, in words. */
export function waitWords(retryAfterMs: number | undefined): string {
  return retryAfterMs ? ` It asks to wait ${Math.ceil(retryAfterMs / 1_000)} s.` : '';
}

/** What the exchange of the code failed on. */
export function exchangeError(error: unknown): InstallError {
  if (!(error instanceof TokenRequestError)) throw error;
  const { status, code, description, retryAfterMs } = error.refusal;
  const failed = (kind: InstallErrorKind, message: string) =>
    new InstallError(kind, message, { cause: error });
  if (status === undefined) return failed('unreachable', "The service's token route could not be reached.");
  const isRefusal = status >= 400 && status < 500 && status !== 429;
  if (isRefusal && !OF_THE_APP.has(code ?? '') && wantsAdministrator(description)) {
    return administratorNeeded(error);
  }
  if (code === 'invalid_grant') {
    return failed(
      'code',
      'The service did not accept the code that it had given out: it has expired, or was used before.',
    );
  }
  if (code === 'invalid_client' || code === 'unauthorized_client' || (status === 401 && code === undefined)) {
    return failed('credentials', "The service did not accept the app's client id and secret.");
  }
  if (status === 429) {
    return failed('busy', `The service answered that it is asked too often (429).${waitWords(retryAfterMs)}`);
  }
  if (isRefusal && code !== undefined) {
    return failed('refused', `The service refused the exchange of the code (${quote(code)}).`);
  }
  if (status >= 500) return failed('trouble', `The service answered that it has trouble (${status}).`);
  return failed(
    'trouble',
    `The service answered the request for tokens with something that the app cannot use (status ${status}).`,
  );
}
