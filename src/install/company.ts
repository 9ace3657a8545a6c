import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceError, toServiceError } from '../client/errors.ts';
import { REQUEST_TIMEOUT_MS } from '../client/http.ts';
import type { Identity } from '../client/identity.ts';
import { backoffMs } from '../client/retry-timing.ts';
import type { ServiceApi } from '../client/service-api.ts';
import { waitWords } from './install-failures.ts';
import { InstallError, type InstallFailure } from './install-types.ts';

/** Tries at the identity route; a person is waiting, so they are few. */
const TRIES = 4;

/** The longest pause that a person is made to wait, in milliseconds. */
const LONGEST_PAUSE_MS = 5_000;

/** How long all of it may take, in milliseconds: what could end later is not begun. */
export const LONGEST_QUESTION_MS = 70_000;

/**
 * Asks which company a fresh token belongs to; trouble that may pass is tried again a few times, as long as there is
 * time for a whole try: a person had better be told of trouble than wait until the connection breaks. Where the service has
 * told of others, an answer that does not tell, and is not like its own, may be such trouble, of something before it.
 *
 * @param tellsOfOthers whether the service has told before which company it is
 * @param now milliseconds, from whenever
 * @returns undefined when the service does not tell
 * @throws InstallError when the service cannot be asked
 */
export async function companyOf(
  api: Pick<ServiceApi, 'identity'>,
  accessToken: string,
  tellsOfOthers: () => Promise<boolean>,
  now = () => performance.now(),
): Promise<Identity | undefined> {
  const lastStartAt = now() + LONGEST_QUESTION_MS - REQUEST_TIMEOUT_MS;
  for (let attempt = 1; ; attempt++) {
    const answer = await api.identity(accessToken).catch(toServiceError);
    const isTrouble = answer instanceof ServiceError;
    const askedMs = isTrouble ? (answer.retryAfterMs ?? 0) : 0;
    const pauseMs = Math.max(askedMs, backoffMs(attempt, Math.random()));
    const isLast = attempt === TRIES || now() + pauseMs > lastStartAt || pauseMs > LONGEST_PAUSE_MS;
    if (!isTrouble) {
      const { company, isOwn } = answer;
      if (company !== undefined || isOwn || isLast || !(await tellsOfOthers())) return company;
    } else if (isLast || answer.remedy !== 'wait') {
      throw new InstallError(
        failureOf(answer),
        `The service did not say which company this is. ${answer.message}${waitWords(answer.retryAfterMs)}`,
        { cause: answer },
      );
    }
    await sleep(pauseMs);
  }
}

/** The sync of the company, or many installs in a row, may have used its limit up. */
function failureOf({ unsent, status }: ServiceError): InstallFailure {
  if (unsent) return 'unreachable';
  return status === 429 ? 'busy' : 'trouble';
}
