import { cutText } from '../client/cut-text.ts';
import { LONGEST_RETRY_AFTER_MS } from '../client/retry-timing.ts';
import { LostFileError } from '../store/own-file.ts';
import { NoTokenAnswerError } from '../tokens/token-answer.ts';
import { askedWaitMs, oauthErrorOf, responseOf } from '../tokens/token-errors.ts';
import { InstallError, type InstallFailure } from './install-types.ts';

/** How much of the service's own words a message repeats, in UTF-16 units. */
const LONGEST_QUOTE = 300;

/** How much of the service's own words is read, in UTF-16 units. */
const LONGEST_READ = 1_000;

/**
 * Words that want an administrator. "The administrator declined" and "contact your administrator" do not: they may go
 * with any refusal.
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

/** Errors that may be for want of a role: those of RFC 6749 (section 4.1.2.1), and what others are called elsewhere. */
const OF_A_ROLE =
  /^(?:access_denied|unauthorized_(?:client|user)|forbidden|not_a(?:uthorized|llowed)|permission_denied|insufficient_\w+)$/;

/** The beginning of the service's own words, for a message. */
function quote(words: string): string {
  const beginning = cutText(words, LONGEST_QUOTE);
  return beginning === '…' ? '(one long word)' : beginning;
}

/** Who may authorize (Authentication, 3) is told in words alone, which are the service's own. */
function wantsAdministrator(description: string | null | undefined): boolean {
  const words = description?.slice(0, LONGEST_READ) ?? '';
  return WANTS_ADMINISTRATOR.some((pattern) => pattern.test(words));
}

function administratorNeeded(cause?: unknown): InstallError {
  return new InstallError('not_administrator', 'The service lets only administrators authorize an app.', {
    cause,
  });
}

/**
 * What the service answered at the authorize route instead of a code (RFC 6749, section 4.1.2.1).
 *
 * @param error the callback's `error` parameter
 * @param description its `error_description`, in the service's words
 */
export function authorizeFailure(error: string, description: string | null): InstallError {
  const isNamed = wantsAdministrator(error.replaceAll('_', ' '));
  if (isNamed || (OF_A_ROLE.test(error) && wantsAdministrator(description))) return administratorNeeded();
  if (error === 'access_denied') {
    const why = description ? ` It says: ${quote(description)}` : '';
    return new InstallError('denied', `The authorization was declined at the service.${why}`);
  }
  const words = description === null ? error : `${error}: ${description}`;
  return new InstallError('refused', `The service answered with an error: ${quote(words)}`);
}

const BY_CODE: Record<string, { failure: InstallFailure; message: string }> = {
  invalid_grant: {
    failure: 'code',
    message: 'The service did not accept the code that it had given out: it has expired, or was used before.',
  },
  invalid_client: {
    failure: 'credentials',
    message:
      "The service did not accept the app's client id and secret. Whoever runs this app has to check them.",
  },
  unauthorized_client: {
    failure: 'credentials',
    message:
      'The service does not let this app ask for tokens. Whoever runs this app has to check its registration.',
  },
};

/** What is wrong with the app's own request, whoever it is made for (RFC 6749, section 5.2). */
const OF_THE_APP = new Set(['invalid_client', 'invalid_request', 'unsupported_grant_type', 'invalid_scope']);

function isUnanswered(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof NoTokenAnswerError) return true;
  }
  return false;
}

function answerWords(status: number | undefined): string {
  if (status !== undefined && status >= 500) return `The service answered that it has trouble (${status}).`;
  const which = status === undefined ? '' : ` (status ${status})`;
  return `The service answered the request for tokens with something that the app cannot use${which}.`;
}

/** For how long the service wants to be left alone, in words; nothing where it does not say. */
export function waitWords(retryAfterMs: number | undefined): string {
  if (!retryAfterMs) return '';
  // No longer one is believed: how long it asks for is not known here.
  if (retryAfterMs >= LONGEST_RETRY_AFTER_MS) {
    return ` It asks to wait ${LONGEST_RETRY_AFTER_MS / 60_000} minutes or longer.`;
  }
  return ` It asks to wait ${Math.ceil(retryAfterMs / 1_000)} s.`;
}

/** The token route said nothing at all, or nothing that OAuth knows. */
function withoutRefusal(cause: unknown): InstallError {
  const status = responseOf(cause)?.status;
  if (status === undefined && isUnanswered(cause)) {
    return new InstallError('unreachable', "The service's token route could not be reached.", { cause });
  }
  if (status === 429) {
    const message = `The service answered that it is asked too often at the moment (429).${waitWords(askedWaitMs(responseOf(cause)))}`;
    return new InstallError('busy', message, { cause });
  }
  return new InstallError('trouble', answerWords(status), { cause });
}

/** What the exchange of the code failed on. */
export function exchangeFailure(error: unknown): InstallError {
  const refusal = oauthErrorOf(error);
  if (refusal === undefined) return withoutRefusal(error);
  if (!OF_THE_APP.has(refusal.code) && wantsAdministrator(refusal.description)) {
    return administratorNeeded(error);
  }
  const known = Object.hasOwn(BY_CODE, refusal.code) ? BY_CODE[refusal.code] : undefined;
  if (known !== undefined) return new InstallError(known.failure, known.message, { cause: error });
  return new InstallError(
    'refused',
    `The service refused the exchange of the code (${quote(refusal.code)}).`,
    {
      cause: error,
    },
  );
}

/** What has kept a grant from being stored: most of it passes, and the grant is kept until then. */
export function notStored(cause: unknown): InstallError {
  const failure = cause instanceof LostFileError ? 'unstored' : 'unwritten';
  return new InstallError(
    failure,
    "The service has authorized the app, but the app's database takes nothing at the moment. Why is in its log.",
    { cause },
  );
}
