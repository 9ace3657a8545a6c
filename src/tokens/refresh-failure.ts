import { ServiceError } from '../client/errors.ts';
import type { TokenRow } from '../store/tokens.ts';
import { refreshExpiry } from './expiry.ts';
import { isRefused, responseOf, toRefreshError } from './token-errors.ts';

/** So long after its six calendar months nobody can say that a refresh token may still be good, in milliseconds. */
const END_MARGIN_MS = 24 * 60 * 60_000;

/**
 * What a refresh failed on, and what to do. How the token route tells that a grant is over is not specified (Errors): by
 * RFC 6749, as we have it, or in some form of its own, which may be trouble that passes. When the six months of the
 * refresh token are over, it is not: then nothing but a new authorization helps, in whatever form it was refused.
 *
 * @param tokens that it was asked for with
 * @param now the service's time, in milliseconds since 1970
 */
export function refreshFailure(
  error: unknown,
  tokens: Pick<TokenRow, 'refresh_issued_at' | 'refreshed_at'>,
  now: number,
): ServiceError {
  const failure = toRefreshError(error);
  // What is wrong with the app itself says nothing about the grant.
  const isOfTheApp = failure.remedy === 'give_up';
  const status = responseOf(error)?.status;
  if (failure.remedy === 'reauthorize' || isOfTheApp || !isRefused(status) || !isOver(tokens, now)) {
    return failure;
  }
  return new ServiceError(
    'reauthorize',
    `The refresh token's six months are over, and the service refuses it (${status}).`,
    { cause: error, status },
  );
}

/** One that a refresh has gone well with since then has another end, which nobody knows. */
function isOver(
  { refresh_issued_at, refreshed_at }: Parameters<typeof refreshFailure>[1],
  now: number,
): boolean {
  const end = refreshExpiry(refresh_issued_at) + END_MARGIN_MS;
  return now > end && refreshed_at <= end;
}
