import { redact } from '../runtime/redaction.ts';
import { backoffMs } from '../service/backoff.ts';
import { RedisError } from '../service/budget.ts';
import { ServiceError, toServiceError } from '../service/errors.ts';
import { StoreError } from '../store/database.ts';
import type { Run } from '../store/runs.ts';
import type { ErrorKind } from '../store/states.ts';
import type { SliceContext, SliceOutcome, SliceWork, SyncParts } from './parts.ts';
import { failedAgainMs } from './schedule.ts';

/** Tries of a page before its run counts as failed: with the pauses between them, about half a minute. */
const MOST_TRIES = 7;

/** How long a run keeps a place from which no page comes, in milliseconds; then the list is read again from its start. */
const PLACE_KEPT_MS = 45 * 60_000;

/** A list that fails is told of after so long, in milliseconds. */
const FAILING_TOLD_MS = 60 * 60_000;

/** Failures that only an operator can end. */
const OPERATORS = new Set<ErrorKind | null>(['credentials', 'key_missing']);

/** Whether a run counts as failed, though it is tried again. */
function hasFailed(kind: ErrorKind | null, attempt: number): boolean {
  return attempt >= MOST_TRIES || (attempt > 0 && OPERATORS.has(kind));
}

/** What kind of failure an error is. */
export function kindOf(error: unknown): ErrorKind {
  if (error instanceof StoreError) return 'store';
  if (error instanceof RedisError) return 'redis';
  return error instanceof ServiceError ? error.kind : 'internal';
}

/** Whether the database or Redis is in trouble: the watch over them says so once, for all jobs. */
export function isOutage(error: unknown): boolean {
  return ['store', 'redis'].includes(kindOf(error));
}

/**
 * Decides how a slice ends that met an error, and writes it down:
 *
 * | kind | what happens |
 * | --- | --- |
 * | a wait that the service asked for | waits; that uses up no try |
 * | `reauthorize` | the run waits for a new authorization |
 * | `credentials`, `key_missing` | failed; tried again in some minutes, from where it stands |
 * | what another try does not change (404, a circle of pages) | failed and closed |
 * | anything else | tried again after growing pauses; failed after seven tries, and still tried |
 * | no page from a place for 45 minutes | failed and closed: the next run begins at the first page |
 *
 * @param isOfPage whether it came of asking for the page at the run's cursor
 * @throws the error itself where the database or Redis is in trouble: nothing can be written down
 */
export async function endSlice(
  parts: SyncParts,
  run: Run,
  thrown: unknown,
  { logger, signal }: SliceContext,
  { work, isOfPage, counts }: { work: SliceWork; isOfPage: boolean; counts: Counts },
): Promise<SliceOutcome> {
  const { runs } = parts;
  const { claim } = work;
  const now = (parts.now ?? Date.now)();
  const { pages } = run;
  if (signal.aborted) {
    await runs.wait(claim, { for: 'turn', until: null, ...counts });
    return { kind: 'yield', pages };
  }
  const kind = kindOf(thrown);
  if (isOutage(thrown)) throw thrown;
  const failure = toServiceError(thrown);
  const error = { kind, detail: redact(failure.message), at: now };
  const { remedy, retryAfterMs } = failure;

  const hadFailed = hasFailed(run.error_kind, run.attempt);
  const fail = (failed: Run, text: string) => {
    logger.warn({ ...runFacts(work, failed, now), err: thrown }, text);
    if (!hadFailed) parts.onRunEnd?.({ resource: work.resource.name, outcome: 'failed' });
  };
  const close = async () => {
    const closed = await runs.fail(claim, error, now, counts);
    if (closed !== undefined) fail(closed, 'the run failed');
    return { kind: 'ended' } as const;
  };
  const wait = async (waitMs: number, facts: Partial<Parameters<typeof runs.wait>[1]> = {}) => {
    const until = now + Math.ceil(waitMs);
    await runs.wait(claim, { for: 'retry', until, error, ...counts, ...facts });
    return { kind: 'wait', until, pages } as const;
  };

  if (kind === 'reauthorize') {
    logger.info({ err: thrown }, 'the run waits: the app has to be authorized again');
    await runs.wait(claim, { for: 'turn', until: null, ...counts });
    return { kind: 'ended' };
  }
  // The reason stands in the run that met it.
  if (failure.isRepeat) return wait(retryAfterMs ?? 0, { error: undefined, hasFailed: hadFailed });

  const stuckSince = isOfPage ? Math.min(run.stuck_since ?? now, now) : run.stuck_since;
  const isPlaceLost = run.cursor !== null && stuckSince !== null && now - stuckSince >= PLACE_KEPT_MS;
  // A 429 of the token route is not the company's limit: its reason is told.
  if (kind === 'rate_limited' && isOfPage) {
    logger.info({ err: thrown, waitMs: retryAfterMs }, 'the service asked to slow down');
    return wait(retryAfterMs ?? 0, { for: 'limit', error: undefined });
  }
  if (isPlaceLost) return close();
  if (retryAfterMs !== undefined) {
    logger.info({ err: thrown, waitMs: retryAfterMs }, 'the service asked to wait');
    return wait(retryAfterMs, { stuckSince, hasFailed: hadFailed });
  }
  if (remedy === 'give_up' && !OPERATORS.has(kind)) return close();
  const attempt = run.attempt + 1;
  const failsNow = hasFailed(kind, attempt);
  const longestMs = failedAgainMs(parts.intervalMs, kind);
  const waitMs = remedy === 'give_up' ? longestMs : Math.min(backoffMs(attempt, Math.random()), longestMs);
  if (failsNow && !hadFailed) fail(run, 'the run failed, and is tried again');
  else logger.info({ err: thrown, attempt, waitMs }, 'a page failed and is tried again');
  return wait(waitMs, { attempt, stuckSince, hasFailed: failsNow });
}

/** Tells the event handler of every list that has failed for an hour. */
export async function reportFailingLists({ runs, onEvent, now = Date.now }: SyncParts): Promise<void> {
  if (onEvent === undefined) return;
  const at = now();
  for (const { instanceId, resource, since, run } of await runs.takeFailing(at - FAILING_TOLD_MS, at)) {
    onEvent(instanceId, {
      type: 'sync_failing',
      resource,
      since: new Date(since).toISOString(),
      errorKind: run?.error_kind ?? null,
      error: run?.error_detail ?? null,
    });
  }
}

/** What the log says of a run at its end. */
export function runFacts({ instance }: SliceWork, run: Run, now: number) {
  const { id, records, created, changed, deleted, requests, refused, held, started_at } = run;
  const seconds = Math.round((now - started_at) / 1_000);
  return {
    company: instance.name,
    run: id,
    records,
    created,
    changed,
    deleted,
    requests,
    refused,
    seconds,
    held,
  };
}

/** Requests that brought no page. */
interface Counts {
  requests: number;
  refused: number;
}
