import { redact } from '../runtime/redaction.ts';
import { type TokenRefusal, TokenRequestError } from './oauth-client.ts';

/** Why an install ended without an instance. Each kind has its own page. */
export type InstallErrorKind =
  /** The state is unknown, used, expired or from another browser. The app sent no request. */
  | 'state'
  /** The person declined at the consent page. */
  | 'denied'
  | 'not_administrator'
  /** The code has expired or was used before. */
  | 'code'
  /** The service refused the client id or secret. */
  | 'credentials'
  | 'unreachable'
  /** The service sent 5xx or an answer that the app cannot read. */
  | 'trouble'
  /** The service sent 429. */
  | 'busy'
  /** The service named another error. */
  | 'refused'
  /** The callback has no code, or repeated or oversized parameters. */
  | 'malformed'
  /** The database did not store the grant. */
  | 'store'
  /** The company is connected, but this browser has logged out meanwhile. */
  | 'logged_out';

/** An install that failed. `kind` chooses the page; the message is plain text for an administrator. */
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

/** The longest quotation from the service, and the longest text that the patterns below search, in characters. */
const LONGEST_QUOTE = 200;
const LONGEST_SEARCH = 1_000;

/**
 * Texts that ask for an administrator (Authentication, 3). "The administrator declined" and "contact your administrator"
 * must not match: they fit any refusal.
 */
const ASKS_FOR_ADMINISTRATOR = [
  /\bonly\b[^.]*\badmin/i,
  /\b(?:must|needs? to|ha(?:s|ve) to) be\b[^.]*\badmin/i,
  /\b(?:needs?|requires?|lacks?) (?!to\b)(?:\w+ ){0,3}admin/i,
  /\b(?:restricted|reserved|limited) (?:to|for) (?:\w+ ){0,3}admin/i,
  /\badmin(?:istrator)?s? only\b/i,
  /\badmin[^.]*\b(?:needed|required|necessary)\b/i,
  /(?:\bnot|n['’]t|\bnon)[ -](?:\w+ ){0,2}admin/i,
];

/** Errors that can mean a missing role: RFC 6749, section 4.1.2.1, and names that other services use. */
const ROLE_ERRORS =
  /^(?:access_denied|unauthorized_(?:client|user)|forbidden|not_a(?:uthorized|llowed)|permission_denied|insufficient_\w+)$/;

/** Errors in the app's own request; the person's role does not matter (RFC 6749, section 5.2). */
const APP_ERRORS = ['invalid_client', 'invalid_request', 'unsupported_grant_type', 'invalid_scope'];

function asksForAdministrator(text: string | null | undefined): boolean {
  return ASKS_FOR_ADMINISTRATOR.some((pattern) => pattern.test(text?.slice(0, LONGEST_SEARCH) ?? ''));
}

function administratorNeeded(cause?: unknown): InstallError {
  return new InstallError('not_administrator', 'The service lets only administrators authorize an app.', {
    cause,
  });
}

function quote(text: string): string {
  const hidden = redact(text);
  return hidden.length > LONGEST_QUOTE ? `${hidden.slice(0, LONGEST_QUOTE)}…` : hidden;
}

/**
 * The error that the service sent to the callback in place of a code (RFC 6749, section 4.1.2.1).
 *
 * @param error the callback's `error`
 * @param description its `error_description`
 */
export function authorizeError(error: string, description: string | null): InstallError {
  if (asksForAdministrator(error.replaceAll('_', ' '))) return administratorNeeded();
  if (ROLE_ERRORS.test(error) && asksForAdministrator(description)) return administratorNeeded();
  if (error === 'access_denied') {
    const why = description ? ` It says: ${quote(description)}` : '';
    return new InstallError('denied', `The authorization was declined at the service.${why}`);
  }
  const text = description === null ? error : `${error}: ${description}`;
  return new InstallError('refused', `The service answered with an error: ${quote(text)}`);
}

/** A sentence that says how long the service asks to wait; empty if it does not ask. */
export function waitMessage(retryAfterMs: number | undefined): string {
  return retryAfterMs ? ` It asks to wait ${Math.ceil(retryAfterMs / 1_000)} s.` : '';
}

/** Says why the exchange of the code failed. Throws any error that is no {@link TokenRequestError}. */
export function exchangeError(error: unknown): InstallError {
  if (!(error instanceof TokenRequestError)) throw error;
  const { status, code, description, retryAfterMs } = error.refusal;
  const isRefusal = status !== undefined && status >= 400 && status < 500 && status !== 429;
  if (isRefusal && !APP_ERRORS.includes(code ?? '') && asksForAdministrator(description)) {
    return administratorNeeded(error);
  }
  const [kind, message] = exchangeFailure(isRefusal, error.refusal);
  return new InstallError(kind, `${message}${status === 429 ? waitMessage(retryAfterMs) : ''}`, {
    cause: error,
  });
}

function exchangeFailure(
  isRefusal: boolean,
  { status, code, description = '' }: TokenRefusal,
): [InstallErrorKind, string] {
  if (status === undefined) return ['unreachable', "The service's token route could not be reached."];
  // RFC 6749's own words name all reasons at once.
  if (code === 'invalid_grant' && /redirect/i.test(description) && !/expired|revoked/i.test(description)) {
    return ['credentials', "The service did not accept the app's address, which PUBLIC_URL gives."];
  }
  if (code === 'invalid_grant') {
    return ['code', 'The service did not accept its own code: it has expired, or was used before.'];
  }
  if (code === 'invalid_client' || code === 'unauthorized_client' || (status === 401 && code === undefined)) {
    return ['credentials', "The service did not accept the app's client id and secret."];
  }
  if (status === 429) return ['busy', 'The service says that it gets too many requests (429).'];
  if (isRefusal && code !== undefined) {
    return ['refused', `The service refused the exchange of the code (${quote(code)}).`];
  }
  if (status >= 500) return ['trouble', `The service reports an error of its own (${status}).`];
  return ['trouble', `The service sent a token response that the app cannot read (status ${status}).`];
}
