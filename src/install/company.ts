import { setTimeout as sleep } from 'node:timers/promises';
import { type ServiceError, toServiceError } from '../client/errors.ts';
import type { Identity } from '../client/identity.ts';
import { backoffMs } from '../client/retry-timing.ts';
import type { ServiceApi } from '../client/service-api.ts';
import { InstallError, type InstallFailure } from './install-types.ts';

/** Tries at the identity route; a person is waiting, so they are few. */
const TRIES = 4;

/** The longest pause that a person is made to wait, in milliseconds. */
const LONGEST_PAUSE_MS = 5_000;

/**
 * Asks which company a fresh token belongs to; trouble that may pass is tried again a few times.
 *
 * @returns undefined when the service does not tell
 * @throws InstallError when the service cannot be asked
 */
export async function companyOf(api: ServiceApi, accessToken: string): Promise<Identity | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await api.identity(accessToken);
    } catch (error) {
      const failure = toServiceError(error);
      const pauseMs = Math.max(failure.retryAfterMs ?? 0, backoffMs(attempt, Math.random()));
      if (failure.remedy !== 'wait' || attempt === TRIES || pauseMs > LONGEST_PAUSE_MS) {
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
