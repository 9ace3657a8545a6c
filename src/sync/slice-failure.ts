import { toServiceError } from '../client/errors.ts';
import { backoffMs } from '../client/retry-timing.ts';
import { NewerSchemaError } from '../store/newer-schema.ts';
import type { Run, RunClaim } from '../store/runs.ts';
import { OwnLogicError } from './own-logic-failure.ts';
import type { SliceContext, SliceOutcome, SyncParts } from './slice-parts.ts';

/** Tries of a page before the run fails: with the pauses between them, about half a minute. */
const MOST_TRIES = 7;

/**
 * Waits in a row that the service may ask for where it refuses a page by anything but 429. Then the run is stuck where
 * the refusal may pass, and is over where trying again does not help.
 */
const MOST_WAITS = 6;

/**
 * How long a run that is stuck keeps its place, in milliseconds: with the tries before and the pause after it, a list
 * whose page cannot be had any more is read anew within about an hour, and trouble that is over sooner costs no page.
 */
const PLACE_KEPT_MS = 45 * 60_000;

const PLACE_LEFT = `No page has come from there for ${PLACE_KEPT_MS / 60_000} minutes: the list is read again from its first page, by itself.`;
const ASKED_TO_WAIT = 'It asked to wait before the next try.';

/** A page for which there was no room in memory is asked for again after so long, in milliseconds, or half of it. */
const NO_ROOM_MS = 5_000;

/** When the newer version of the app may go on, in milliseconds: by then this process has ended. */
const HAND_OVER_MS = 3_000;

/**
 * Decides how a slice ends that met an error, and writes it down: wait as long as the service wants, try again
 * later, or fail with the reason. A wait that the service asked for uses up no try of a page. The own logic's tries are
 * its own, and bounded where its batch is parked. A run that gets no page from its place for long gives the place up.
 *
 * @param run as it was after the last page that was written: a written page sets its count of tries back
 * @param isOfPage whether it is what came of asking for the page at the run's cursor
 */
export async function endSlice(
  parts: SyncParts,
  claim: RunClaim,
  run: Run,
  error: unknown,
  context: SliceContext,
  isOfPage = false,
): Promise<SliceOutcome> {
  const now = (parts.now ?? Date.now)();
  const { runs, hideSecrets = (text: string) => text } = parts;
  if (context.signal.aborted) {
    await runs.wait(claim, { for: 'turn', until: null });
    return { kind: 'yield', pages: run.pages };
  }
  const fail = async (message: string, keepsPlace: boolean, stuckSince = run.stuck_since) => {
    context.logger.warn({ err: error, attempt: run.attempt + 1 }, 'the run failed');
    await runs.fail(claim, { error: hideSecrets(message), keepsPlace, stuckSince, now });
    parts.onRunEnd?.({ resource: claim.resource, outcome: 'failed' });
    return { kind: 'ended' } as const;
  };
  if (error instanceof NewerSchemaError) {
    await runs.wait(claim, { for: 'turn', until: null });
    return { kind: 'wait', until: now + HAND_OVER_MS, pages: run.pages };
  }

  const failure = toServiceError(error);
  if (failure.remedy === 'reauthorize') {
    context.logger.info({ err: error }, 'the run ends: the app has to be authorized again');
    await runs.wait(claim, { for: 'turn', until: null });
    return { kind: 'ended' };
  }
  const { message, retryAfterMs } = failure;
  if (failure.remedy === 'give_up' && (retryAfterMs === undefined || run.waits >= MOST_WAITS)) {
    // What else is given up on lies in the list, or at the place in it, and goes on nowhere but at the first page.
    return fail(message, failure.kind !== undefined);
  }
  if (failure.kind === 'backoff') {
    // The reason stands in the run of the refresh that failed.
    const until = now + (retryAfterMs ?? 0);
    await runs.wait(claim, { for: 'retry', until });
    return { kind: 'wait', until, pages: run.pages };
  }
  if (failure.noRoom) {
    const waitMs = backoffMs(1, Math.random(), { firstMs: NO_ROOM_MS, longestMs: NO_ROOM_MS });
    context.logger.info({ err: error, waitMs }, 'there was no room in memory for a page');
    await runs.wait(claim, { for: 'retry', until: now + waitMs, error: hideSecrets(message) });
    return { kind: 'wait', until: now + waitMs, pages: run.pages };
  }
  const attempt = run.attempt + 1;
  if (failure instanceof OwnLogicError) {
    const { tries, since, waitsFor } = failure;
    const ms = Math.max(retryAfterMs ?? 0, backoffMs(tries, Math.random()));
    context.logger.info({ err: error, attempt, waitMs: ms }, 'a page failed and is tried again');
    const until = now + ms;
    await runs.wait(claim, {
      for: waitsFor === 'limit' ? 'limit' : 'retry',
      until,
      attempt,
      error: hideSecrets(message),
      own: { tries, since: since ?? now },
    });
    return { kind: 'wait', until, pages: run.pages };
  }
  const isAtPlace = isOfPage && run.cursor !== null;
  // Not since a moment ahead: the clock may have been set back since.
  const stuckSince = isAtPlace ? Math.min(run.stuck_since ?? now, now) : run.stuck_since;
  const isPlaceLost = isAtPlace && run.stuck_since !== null && now - run.stuck_since >= PLACE_KEPT_MS;
  const leavePlace = () => {
    context.logger.warn({ err: error }, 'no page has come from its place for long: the run will begin anew');
    return fail(`${message} ${PLACE_LEFT}`, false);
  };
  if (retryAfterMs !== undefined) {
    const until = now + retryAfterMs;
    const isLimit = failure.status === 429;
    const counts = !isLimit && (isOfPage || failure.remedy === 'give_up');
    const waits = run.waits + (counts ? 1 : 0);
    const isStuck = counts && waits >= MOST_WAITS;
    if (isStuck && isPlaceLost) return leavePlace();
    context.logger.info({ err: error, waitMs: retryAfterMs }, 'the service asked to wait');
    await runs.wait(claim, {
      until,
      waits,
      ...(isStuck ? { stuckSince } : {}),
      ...(isLimit
        ? { for: 'limit', error: null }
        : { for: 'retry', error: hideSecrets(`${message} ${ASKED_TO_WAIT}`) }),
    });
    return { kind: 'wait', until, pages: run.pages };
  }
  if (attempt >= MOST_TRIES) {
    if (isPlaceLost) return leavePlace();
    return fail(`${message} Tried ${attempt} times; it will be tried again by itself.`, true, stuckSince);
  }
  const ms = backoffMs(attempt, Math.random());
  context.logger.info({ err: error, attempt, waitMs: ms }, 'a page failed and is tried again');
  const until = now + ms;
  await runs.wait(claim, { for: 'retry', until, attempt, error: hideSecrets(message) });
  return { kind: 'wait', until, pages: run.pages };
}
