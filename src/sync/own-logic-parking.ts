import { setImmediate as othersTurn } from 'node:timers/promises';
import { ServiceError } from '../client/errors.ts';
import type { Parking } from '../store/parked-batches.ts';
import type { Run, RunClaim } from '../store/runs.ts';
import type { ServiceDocument } from './own-logic.ts';
import { type BatchChanges, callOwnLogic } from './own-logic-call.ts';
import { OwnLogicError } from './own-logic-failure.ts';
import { watchForLoss } from './own-logic-lost.ts';
import { isShutdown } from './process-failure.ts';
import type { SliceContext, SliceWork, SyncParts } from './slice-parts.ts';

/** Tries of a batch before it is parked: with the pauses between them, up to eight seconds. */
const MOST_TRIES = 5;

/** And of one that takes too long. */
const MOST_TIMEOUTS = 2;

/**
 * The longest that a batch holds up its list, in milliseconds, as calls of the service have to wait. The company's own
 * limit holds up the pages likewise: it gets many windows. Trouble of the service, or a guard, may be none of the pages'.
 */
const LONGEST_HOLD_MS = { limit: 20 * 60_000, service: 5 * 60_000 };

/** The longest that a call of the service waits for a parked batch, in milliseconds: two windows, as pages wait for it. */
const PARKED_MAX_WAIT_MS = 2 * 60_000;

/** What may have come of a try whose end nobody has seen. */
const LOST =
  'the process died, or was kept from everything else for so long that another worker took the run over.';

/** How the own logic has failed on a batch before. */
export type FailuresBefore = Pick<Run, 'own_tries' | 'own_since'>;

/** It has not. */
export const NO_FAILURES: FailuresBefore = { own_tries: 0, own_since: null };

/**
 * Hands a batch to the own logic, as often as it may be tried.
 *
 * @param before what became of it in other slices
 * @returns undefined when it was taken, or is not to be written any more, as the store will see; else what the batch is to
 *   be parked with, in the transaction that writes it
 * @throws ServiceError when the batch has to be tried again
 */
export async function tellOwnLogic(
  parts: SyncParts,
  { instance, resource, claim }: SliceWork,
  before: FailuresBefore,
  changes: BatchChanges,
  context: SliceContext,
): Promise<Parking | undefined> {
  const now = parts.now ?? Date.now;
  const calledAt = now();
  try {
    await callShown(parts, { instance, resource, claim }, changes, context);
    return undefined;
  } catch (thrown) {
    const error = await failureOf(parts, claim, thrown);
    // What a shutdown or a pause has broken off says nothing about the batch.
    if (!(error instanceof OwnLogicError) || context.signal.aborted) throw error;
    if (!(await parts.runs.holds(claim))) return undefined;
    error.tries = before.own_tries + 1;
    // Not a moment ahead: the clock may have been set back since.
    error.since = Math.min(before.own_since ?? calledAt, calledAt);
    if (mayBeTriedAgain(error, error.since, now())) throw error;
    return parkingFor(parts, claim, error, context);
  }
}

/**
 * What a batch is parked with that is not told again, as its tries are used up: the last of them had no end, and may have
 * ended its process, or kept it for so long that it lost the run. Each further one would, before it could be noted.
 *
 * @returns undefined for a batch that is to be told
 * @throws ServiceError when it has to wait, as too many are parked
 */
export async function parkUntold(
  parts: SyncParts,
  { resource, claim }: SliceWork,
  { own_tries }: FailuresBefore,
  context: SliceContext,
): Promise<Parking | undefined> {
  if (own_tries < MOST_TRIES) return undefined;
  const error = new OwnLogicError(
    `The app's own logic did not come to an end with a batch of ${resource.name}: ${LOST}`,
    {},
  );
  error.tries = own_tries;
  return parkingFor(parts, claim, error, context);
}

async function parkingFor(
  parts: SyncParts,
  claim: RunClaim,
  error: OwnLogicError,
  { logger }: SliceContext,
): Promise<Parking> {
  if (await parts.parked.isFull(claim)) throw tooManyParked(error);
  logger.warn({ err: error, tries: error.tries }, 'the own logic does not take a batch: it is parked');
  return { error: shownError(parts, error), tries: error.tries };
}

/** What is said of a run whose batch the own logic takes long with. @param since milliseconds since 1970 */
export function atWorkText(resource: string, since: number): string {
  return `The app's own logic has been at work on a batch of ${resource} since ${timeOf(since)} UTC, waits for the service included.`;
}

/** What is said of a parked batch while it is tried, and afterwards where nobody has seen the end of that. */
function begunText(resource: string, at: number): string {
  return `The app's own logic was called with a batch of ${resource} at ${timeOf(at)} UTC. If it is not at work any more, ${LOST}`;
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString().slice(11, 19);
}

/** Calls the own logic; while that takes long, the run says so. */
async function callShown(
  parts: SyncParts,
  { instance, resource, claim }: SliceWork,
  changes: BatchChanges,
  context: SliceContext,
  maxWaitMs?: number,
): Promise<void> {
  const calledAt = (parts.now ?? Date.now)();
  let noted: Promise<boolean> | undefined;
  const onLong = () => {
    const error = atWorkText(resource.name, calledAt);
    noted = parts.runs.wait(claim, { for: 'limit', until: null, error });
    // What keeps it from being noted keeps the page from being written, too.
    noted.catch(() => undefined);
  };
  const isWanted = () => parts.runs.holds(claim);
  const watch = { maxWaitMs, onLong, isWanted };
  try {
    await callOwnLogic(parts, { instance, resource: resource.name }, changes, context, watch);
  } finally {
    if (await noted) await parts.runs.goOn(claim);
  }
}

function mayBeTriedAgain(error: OwnLogicError, since: number, now: number): boolean {
  if (error.tries >= (error.isTimeout ? MOST_TIMEOUTS : MOST_TRIES)) return false;
  if (error.waitsFor === undefined) return true;
  return now + (error.retryAfterMs ?? 0) - since < LONGEST_HOLD_MS[error.waitsFor];
}

/** An end of the grant ends the instance's work before it is told: one that does not, the own logic has made up. */
async function failureOf(parts: SyncParts, claim: RunClaim, error: unknown): Promise<unknown> {
  if (!(error instanceof ServiceError) || error.remedy !== 'reauthorize') return error;
  if (!(await parts.runs.holds(claim))) return error;
  return new OwnLogicError(error.message, { cause: error });
}

/**
 * Tries every parked batch of a list once in a run, before its next page, and those that somebody wants to be tried at
 * once; once also where the try has no end, as its process dies or loses the run. One that takes too long, or has to wait
 * for the service, leaves the others to the next slice, so that pages come in between; and one that is to wait for long is
 * left alone by runs that begin before.
 *
 * @param isOver whether others have their turn
 * @returns whether there is something left to try, and time is over, or the process shuts down
 * @throws ServiceError when the run needs a new authorization
 */
export async function retryParked(
  parts: SyncParts,
  work: SliceWork,
  run: Run,
  isOver: (asked: number) => boolean,
  context: SliceContext,
): Promise<boolean> {
  const now = parts.now ?? Date.now;
  const { claim } = work;
  for (;;) {
    // A batch may be large, and nothing of it waits for anybody.
    await othersTurn();
    const batch = await parts.parked.nextDue(claim, run.started_at ?? 0);
    if (batch === undefined) return false;
    if (context.signal.aborted || isOver(0)) return true;
    // Nobody's logic is called for an instance that was paused or disconnected meanwhile.
    if (!(await parts.runs.holds(claim))) return false;
    const { created, changed, deleted } = batch;
    const changes = { created: parse(created), changed: parse(changed), deleted: parse(deleted) };
    const begunAt = now();
    if (!(await parts.parked.begin(claim, batch.place, begunText(work.resource.name, begunAt), begunAt)))
      return false;
    const warnOfLoss = watchForLoss(context.logger);
    let isOurs = false;
    try {
      await callShown(parts, work, changes, context, PARKED_MAX_WAIT_MS);
      isOurs = await parts.parked.take(claim, batch.place);
      if (!isOurs) return false;
      context.logger.info({ batch: batch.place }, 'the own logic has taken a parked batch');
    } catch (thrown) {
      const error = await failureOf(parts, claim, thrown);
      const isFailure = error instanceof OwnLogicError;
      const saysNothing = !isFailure || isShutdown(context.signal) || !(await parts.runs.holds(claim));
      if (saysNothing) await parts.parked.putBack(claim, batch);
      if (!isFailure || context.signal.aborted) throw error;
      if (saysNothing) return false;
      context.logger.warn({ err: error, batch: batch.place }, 'the own logic does not take a parked batch');
      const notBefore = now() + (error.retryAfterMs ?? 0);
      isOurs = await parts.parked.keep(claim, batch.place, shownError(parts, error), notBefore);
      if (error.isTimeout || error.waitsFor !== undefined || !isOurs) return false;
    } finally {
      // Whoever has the run by now may have told something newer, before this.
      if (!isOurs && (await parts.inDoubt.noteSeqsIfLost(claim, batch.seqs))) warnOfLoss();
    }
  }
}

/** Documents that cannot be read any more are left out: a damaged record keeps nobody else's from being told. */
function parse(texts: readonly string[]): ServiceDocument[] {
  return texts.flatMap((text) => {
    try {
      return [JSON.parse(text)];
    } catch {
      return [];
    }
  });
}

function shownError({ hideSecrets = (text) => text }: SyncParts, { message }: OwnLogicError): string {
  return hideSecrets(message);
}

function tooManyParked(cause: OwnLogicError): ServiceError {
  const message = `${cause.message} So many batches are parked already that this one has to wait.`;
  return new ServiceError('wait', message, { cause });
}
