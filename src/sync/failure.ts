import { redact } from '../runtime/redaction.ts';
import { backoffMs } from '../service/backoff.ts';
import { RedisError } from '../service/budget.ts';
import { toServiceError } from '../service/errors.ts';
import { StoreError } from '../store/database.ts';
import type { RequestCounts, Run } from '../store/runs.ts';
import type { ErrorKind } from '../store/states.ts';
import type { SliceContext, SliceOutcome, SliceWork, SyncParts } from './parts.ts';
import { failedPauseMs, listIntervalMs, MINUTE_MS } from './schedule.ts';

/** After so many tries of a page its run counts as failed. With the pauses that takes half a minute. */
const MOST_TRIES = 7;

/** A run gives up a cursor that brings no page for this long, in milliseconds. */
const CURSOR_LIFETIME_MS = 45 * MINUTE_MS;

/** The event handler hears of a list that fails for this long, in milliseconds. */
const FAILING_MS = 60 * MINUTE_MS;

/** Of so many lists at a time. */
const TOLD_AT_ONCE = 50;

/** Errors that only an operator can end. */
const OPERATOR_ERRORS: readonly (ErrorKind | null)[] = ['credentials', 'key_missing'];

/** Whether a run counts as failed, although the app retries it. */
function hasFailed(kind: ErrorKind | null, attempt: number): boolean {
  return attempt >= MOST_TRIES || (attempt > 0 && OPERATOR_ERRORS.includes(kind));
}

/** Whether the database or Redis fails. The watch over them logs that once for all jobs. */
export function isOutage(error: unknown): boolean {
  return error instanceof StoreError || error instanceof RedisError;
}

/**
 * Decides how a slice ends after an error, and writes that down:
 *
 * | error | the run |
 * | --- | --- |
 * | the service asks to wait | waits, and the try does not count |
 * | `reauthorize` | waits for a new authorization |
 * | `credentials`, `key_missing` | fails, and is retried from its cursor after some minutes |
 * | a retry cannot help (404, pages in a circle) | fails and is closed |
 * | any other | is retried after growing pauses, and counts as failed after seven tries |
 * | no page from the cursor for 45 minutes | fails and is closed: the next run begins at the first page |
 *
 * @param isOfPage whether the error came from the request for the page at the run's cursor
 * @throws the error itself if the database or Redis fails: then nothing can be written
 */
export async function endSlice(
  parts: SyncParts,
  run: Run,
  thrown: unknown,
  { logger, signal }: SliceContext,
  { work, isOfPage, counts }: { work: SliceWork; isOfPage: boolean; counts: RequestCounts },
): Promise<SliceOutcome> {
  const { runs } = parts;
  const { claim } = work;
  const { pages } = run;
  if (signal.aborted) {
    await runs.wait(claim, { for: 'turn', until: null, ...counts });
    return { kind: 'yield', pages };
  }
  if (isOutage(thrown)) throw thrown;
  const failure = toServiceError(thrown);
  const { kind, remedy, retryAfterMs = 0 } = failure;
  if (kind === 'reauthorize') {
    logger.info({ err: thrown }, 'the run waits for a new authorization');
    await runs.wait(claim, { for: 'turn', until: null, ...counts });
    return { kind: 'ended' };
  }

  const now = (parts.now ?? Date.now)();
  const error = { kind, detail: redact(failure.message), at: now };
  const hadFailed = hasFailed(run.error_kind, run.attempt);
  const stuckSince = isOfPage ? Math.min(run.stuck_since ?? now, now) : run.stuck_since;
  const wait = async (waitMs: number, facts: Partial<Parameters<typeof runs.wait>[1]>) => {
    const until = now + Math.ceil(waitMs);
    await runs.wait(claim, { for: 'retry', until, ...counts, ...facts });
    return { kind: 'wait', until, pages } as const;
  };
  const report = (failed: Run, text: string) => {
    logger.warn({ ...runFacts(work, failed, now), err: thrown }, text);
    if (!hadFailed) parts.onRunEnd?.({ resource: work.resource.name, outcome: 'failed' });
  };

  // The run that met the error first shows it.
  if (failure.isRepeat) return wait(retryAfterMs, { hasFailed: hadFailed });
  // A 429 of the token route is another limit than the company's: its reason is shown.
  if (kind === 'rate_limited' && isOfPage) {
    logger.info({ err: thrown, waitMs: retryAfterMs }, 'the service asks to slow down');
    return wait(retryAfterMs, { for: 'limit' });
  }
  const isCursorDead = run.cursor !== null && stuckSince !== null && now - stuckSince >= CURSOR_LIFETIME_MS;
  const isFinal = remedy === 'give_up' && failure.retryAfterMs === undefined;
  if (isCursorDead || (isFinal && !OPERATOR_ERRORS.includes(kind))) {
    const intervalMs = listIntervalMs(work.list, work.resource, parts.intervalMs);
    const closed = await runs.fail(claim, error, now, now + failedPauseMs(intervalMs, kind), counts);
    if (closed !== undefined) report(closed, 'the run failed');
    return { kind: 'ended' };
  }
  if (failure.retryAfterMs !== undefined) {
    logger.info({ err: thrown, waitMs: retryAfterMs }, 'the service asks to wait');
    return wait(retryAfterMs, { error, stuckSince, hasFailed: hadFailed });
  }
  const attempt = run.attempt + 1;
  const failsNow = hasFailed(kind, attempt);
  const longestMs = failedPauseMs(parts.intervalMs, kind);
  const waitMs = isFinal ? longestMs : Math.min(backoffMs(attempt, Math.random()), longestMs);
  if (failsNow && !hadFailed) report(run, 'the run failed and is retried');
  else logger.info({ err: thrown, attempt, waitMs }, 'a page failed and is retried');
  return wait(waitMs, { error, attempt, stuckSince, hasFailed: failsNow });
}

/** Reports every list that has failed for an hour to the event handler. */
export async function reportFailingLists({ dueLists, onEvent, now = Date.now }: SyncParts): Promise<void> {
  if (onEvent === undefined) return;
  const at = now();
  for (let count = TOLD_AT_ONCE; count === TOLD_AT_ONCE; ) {
    const lists = await dueLists.takeFailing(at - FAILING_MS, at, TOLD_AT_ONCE);
    count = lists.length;
    for (const { instanceId, resource, since, run } of lists) {
      onEvent(instanceId, {
        type: 'sync_failing',
        resource,
        since: new Date(since).toISOString(),
        errorKind: run?.error_kind ?? null,
        error: run?.error_detail ?? null,
      });
    }
  }
}

/** Facts about a run for the log, at the run's end. */
export function runFacts({ instance }: SliceWork, run: Run, now: number) {
  const { records, created, changed, deleted, missing, requests, refused, held } = run;
  const seconds = Math.round((now - run.started_at) / 1_000);
  const counts = { records, created, changed, deleted, missing, requests, refused, held };
  return { company: instance.name, run: run.id, seconds, ...counts };
}
