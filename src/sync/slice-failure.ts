import { toServiceError } from '../client/errors.ts';
import { backoffMs } from '../client/retry-timing.ts';
import { NewerSchemaError } from '../store/newer-schema.ts';
import type { Run, RunClaim } from '../store/runs.ts';
import { VaultError } from '../tokens/vault.ts';
import { OwnLogicError } from './own-logic-failure.ts';
import type { SliceContext, SliceOutcome, SyncParts } from './slice-parts.ts';

/** Tries of a page before the run fails: with the pauses between them, about half a minute. */
const MOST_TRIES = 7;

/** When the newer version of the app may go on, in milliseconds: by then this process has ended. */
const HAND_OVER_MS = 3_000;

/**
 * Decides how a slice ends that met an error, and writes it down: wait as long as the service wants, try again
 * later, or fail with the reason. A wait that the service asked for uses up no try of a page. The own logic's tries are
 * its own, and bounded where its batch is parked.
 *
 * @param run as it was after the last page that was written: a written page sets its count of tries back
 */
export async function endSlice(
  parts: SyncParts,
  claim: RunClaim,
  run: Run,
  error: unknown,
  context: SliceContext,
): Promise<SliceOutcome> {
  const now = (parts.now ?? Date.now)();
  const { runs, hideSecrets = (text: string) => text } = parts;
  if (context.signal.aborted) {
    await runs.wait(claim, { for: 'turn', until: null });
    return { kind: 'yield', pages: run.pages };
  }
  const fail = async (message: string, keepsPlace: boolean): Promise<SliceOutcome> => {
    context.logger.warn({ err: error, attempt: run.attempt + 1 }, 'the run failed');
    await runs.fail(claim, { error: hideSecrets(message), keepsPlace, now });
    parts.onRunEnd?.({ resource: claim.resource, outcome: 'failed' });
    return { kind: 'ended' };
  };
  if (error instanceof NewerSchemaError) {
    await runs.wait(claim, { for: 'turn', until: null });
    return { kind: 'wait', until: now + HAND_OVER_MS, pages: run.pages };
  }
  if (error instanceof VaultError) return fail(error.message, true);

  const failure = toServiceError(error);
  if (failure.remedy === 'reauthorize') {
    context.logger.info({ err: error }, 'the run ends: the app has to be authorized again');
    await runs.wait(claim, { for: 'turn', until: null });
    return { kind: 'ended' };
  }
  if (failure.remedy === 'give_up') return fail(failure.message, false);
  const attempt = run.attempt + 1;
  if (failure instanceof OwnLogicError) {
    const { tries, since, waitsFor, retryAfterMs = 0 } = failure;
    const ms = Math.max(retryAfterMs, backoffMs(tries, Math.random()));
    context.logger.info({ err: error, attempt, waitMs: ms }, 'a page failed and is tried again');
    const until = now + ms;
    await runs.wait(claim, {
      for: waitsFor === 'limit' ? 'limit' : 'retry',
      until,
      attempt,
      error: hideSecrets(failure.message),
      own: { tries, since: since ?? now },
    });
    return { kind: 'wait', until, pages: run.pages };
  }
  if (failure.retryAfterMs !== undefined) {
    context.logger.info({ err: error, waitMs: failure.retryAfterMs }, 'the service asked to wait');
    const until = now + failure.retryAfterMs;
    await runs.wait(claim, { for: 'limit', until });
    return { kind: 'wait', until, pages: run.pages };
  }
  if (attempt >= MOST_TRIES) {
    return fail(`${failure.message} Tried ${attempt} times; it will be tried again by itself.`, true);
  }
  const ms = backoffMs(attempt, Math.random());
  context.logger.info({ err: error, attempt, waitMs: ms }, 'a page failed and is tried again');
  const until = now + ms;
  await runs.wait(claim, { for: 'retry', until, attempt, error: hideSecrets(failure.message) });
  return { kind: 'wait', until, pages: run.pages };
}
