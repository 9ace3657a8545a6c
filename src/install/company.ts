import { setTimeout as sleep } from 'node:timers/promises';
import { type ServiceError, toServiceError } from '../client/errors.ts';
import { REQUEST_TIMEOUT_MS } from '../client/http.ts';
import type { Identity } from '../client/identity.ts';
import { backoffMs } from '../client/retry-timing.ts';
import type { ServiceApi } from '../client/service-api.ts';
import { InstallError, type InstallFailure } from './install-types.ts';

/** Tries at the identity route; a person is waiting, so they are few. */
const TRIES = 4;

/** The longest pause that a person is made to wait, in milliseconds. */
const LONGEST_PAUSE_MS = 5_000;

/** How long all of it may take, in milliseconds: what could end later is not begun. */
export const LONGEST_QUESTION_MS = 70_000;

/**
 * Asks which company a fresh token belongs to; trouble that may pass is tried again a few times, as long as there is
 * time for a whole try: a person had better be told of trouble than wait until the connection breaks.
 *
 * @param now milliseconds, from whenever
 * @returns undefined when the service does not tell
 * @throws InstallError when the service cannot be asked
 */
export async function companyOf(
  api: Pick<ServiceApi, 'identity'>,
  accessToken: string,
  now = () => performance.now(),
): Promise<Identity | undefined> {
  const lastStartAt = now() + LONGEST_QUESTION_MS - REQUEST_TIMEOUT_MS;
  for (let attempt = 1; ; attempt++) {
    try {
      return await api.identity(accessToken);
    } catch (error) {
      const failure = toServiceError(error);
      const pauseMs = Math.max(failure.retryAfterMs ?? 0, backoffMs(attempt, Math.random()));
      const isLast = attempt === TRIES || now() + pauseMs > lastStartAt;
      if (failure.remedy !== 'wait' || isLast || pauseMs > LONGEST_PAUSE_MS) {
        throw new InstallError(
          failureOf(failure),
          `The service did not say which company this is. ${failure.message}${waitWords(failure)}`,
          { cause: error },
        );
      }
      await sleep(pauseMs);
    }
  }
}

/** The sync of the company, or many installs in a row, may have used its limit up. */
function failureOf({ unsent, status }: ServiceError): InstallFailure {
  if (unsent) return 'unreachable';
  return status === 429 ? 'busy' : 'trouble';
}

function waitWords({ retryAfterMs }: ServiceError): string {
  return retryAfterMs ? ` It asks to wait ${Math.ceil(retryAfterMs / 1_000)} s.` : '';
}
