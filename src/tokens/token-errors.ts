import { AuthorizationResponseError, ResponseBodyError, WWWAuthenticateChallengeError } from 'openid-client';
import { ServiceError } from '../client/errors.ts';
import { parseHttpDate } from '../client/http-date.ts';
import { retryAfterMs } from '../client/retry-timing.ts';
import { HEADER } from '../contract/headers.ts';

/** What is said where the service refuses the app itself: nobody but those who run it can mend that. */
export const CREDENTIALS_REFUSED =
  'The service does not accept CLIENT_ID and CLIENT_SECRET: whoever runs this app has to put them right, and restart it.';

/** What the token route refused, by the names of RFC 6749, section 5.2; undefined when it did not speak OAuth. */
export function oauthErrorOf(error: unknown): { code: string; description: string | undefined } | undefined {
  if (error instanceof ResponseBodyError || error instanceof AuthorizationResponseError) {
    const description: unknown = error.error_description;
    return { code: error.error, description: typeof description === 'string' ? description : undefined };
  }
  if (error instanceof WWWAuthenticateChallengeError && isOfCredentials(error)) {
    return { code: 'invalid_client', description: undefined };
  }
  return undefined;
}

/** The client shows its credentials by Basic, and is challenged to by that (RFC 6749, section 5.2). Bearer is about a token. */
function isOfCredentials({ cause }: WWWAuthenticateChallengeError): boolean {
  return cause.some(({ scheme }) => scheme === 'basic');
}

/**
 * Maps what a refresh failed on to the family of errors. Only `invalid_grant` says that a grant is over; whatever else
 * goes wrong, the grant is kept, unless it is over by its age: see `refresh-failure.ts`.
 */
export function toRefreshError(error: unknown): ServiceError {
  // A challenge alone may be the answer to any request that is refused: also to a refresh token that is over.
  const refusal = error instanceof WWWAuthenticateChallengeError ? undefined : oauthErrorOf(error);
  if (refusal?.code === 'invalid_grant') {
    return new ServiceError('reauthorize', 'The service does not accept the refresh token any more.', {
      cause: error,
    });
  }
  if (refusal?.code === 'invalid_client' || refusal?.code === 'unauthorized_client') {
    return new ServiceError('give_up', CREDENTIALS_REFUSED, { cause: error });
  }
  const response = responseOf(error);
  const waitMs = askedWaitMs(response);
  const status = response === undefined ? '' : ` (${response.status})`;
  const what = isRefused(response?.status)
    ? "The service refuses to renew the app's access"
    : "The service's token route has trouble";
  return new ServiceError('wait', `${what}${status}.`, {
    cause: error,
    // That of a limit would be taken for the limit of the company's requests, which these do not count in.
    ...(response === undefined || response.status === 429 ? {} : { status: response.status }),
    ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }),
  });
}

/** How long the token route asks to wait, in milliseconds, kept within reason; undefined when it does not. */
export function askedWaitMs(response: Response | undefined): number | undefined {
  // A date is read against the service's own: our clock may be wrong.
  const now = parseHttpDate(response?.headers.get('date')) || Date.now();
  return retryAfterMs(response?.headers.get(HEADER.retryAfter) ?? undefined, now);
}

/**
 * Whether a status, of an answer without a grant, refuses what was asked for, and does not only want it later or once
 * more. Some services refuse with that of success.
 */
export function isRefused(status: number | undefined): status is number {
  if (status === undefined || status === 408 || status === 429) return false;
  return (status >= 200 && status < 300) || (status >= 400 && status < 500);
}

/** The answer behind an error of openid-client, which hands it on as the cause, or beside it where it could be read. */
export function responseOf(error: unknown): Response | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof ResponseBodyError || cause instanceof WWWAuthenticateChallengeError) {
      return cause.response;
    }
    if (cause.cause instanceof Response) return cause.cause;
  }
  return undefined;
}
