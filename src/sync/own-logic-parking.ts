import { ServiceError } from '../client/errors.ts';
import type { Parking } from '../store/parked-batches.ts';
import type { Run } from '../store/runs.ts';
import { type BatchChanges, callOwnLogic, OwnLogicError } from './own-logic-call.ts';
import type { SliceContext, SliceWork, SyncParts } from './slice-parts.ts';

/** Tries of a batch before it is parked: with the pauses between them, up to eight seconds. */
const MOST_TRIES = 5;

/** And of one that takes too long. */
const MOST_TIMEOUTS = 2;

/**
 * Hands a batch to the own logic, as often as it may be tried.
 *
 * @param triesBefore how often the own logic has failed on this batch
 * @returns undefined when it was taken; else what the batch is to be parked with, in the transaction that writes it
 * @throws ServiceError when the batch has to be tried again
 */
export async function tellOwnLogic(
  parts: SyncParts,
  { instance, resource, claim }: SliceWork,
  triesBefore: number,
  changes: BatchChanges,
  context: SliceContext,
): Promise<Parking | undefined> {
  try {
    await callOwnLogic(parts, { instance, resource: resource.name }, changes, context);
    return undefined;
  } catch (error) {
    // What a shutdown has broken off says nothing about the batch.
    if (!(error instanceof OwnLogicError) || context.signal.aborted) throw error;
    error.tries = triesBefore + 1;
    if (error.tries < (error.isTimeout ? MOST_TIMEOUTS : MOST_TRIES)) throw error;
    if (await parts.parked.isFull(claim)) throw tooManyParked(error);
    context.logger.warn(
      { err: error, tries: error.tries },
      'the own logic does not take a batch: it is parked',
    );
    return { error: shownError(parts, error), tries: error.tries };
  }
}

/**
 * Tries every parked batch of a list once in a run, before its next page, and those that somebody wants to be tried at
 * once. One that takes too long leaves the others to the next slice, so that pages come in between.
 *
 * @param isOver whether others have their turn
 * @returns whether there is something left to try, and time is over
 * @throws ServiceError when the run has to wait, or needs a new authorization
 */
export async function retryParked(
  parts: SyncParts,
  work: SliceWork,
  run: Run,
  isOver: (asked: number) => boolean,
  context: SliceContext,
): Promise<boolean> {
  const now = parts.now ?? Date.now;
  const { instance, resource, claim } = work;
  for (;;) {
    const batch = await parts.parked.nextDue(claim, run.started_at ?? 0);
    if (batch === undefined) return false;
    if (isOver(0)) return true;
    // Nobody's logic is called for an instance that was paused or disconnected meanwhile.
    if (!(await parts.runs.holds(claim))) return false;
    const { created, changed, deleted } = batch;
    const changes = { created: parse(created), changed: parse(changed), deleted: parse(deleted) };
    try {
      await callOwnLogic(parts, { instance, resource: resource.name }, changes, context);
      if (!(await parts.parked.take(claim, batch.place))) return false;
      context.logger.info({ batch: batch.place }, 'the own logic has taken a parked batch');
    } catch (error) {
      if (!(error instanceof OwnLogicError) || context.signal.aborted) throw error;
      context.logger.warn({ err: error, batch: batch.place }, 'the own logic does not take a parked batch');
      const isOurs = await parts.parked.keep(claim, batch.place, shownError(parts, error), now());
      if (error.isTimeout || !isOurs) return false;
    }
  }
}

function parse(texts: readonly string[]) {
  return texts.map((text) => JSON.parse(text));
}

function shownError({ hideSecrets = (text) => text }: SyncParts, { message }: OwnLogicError): string {
  return hideSecrets(message);
}

function tooManyParked(cause: OwnLogicError): ServiceError {
  const message = `${cause.message} So many batches are parked already that this one has to wait.`;
  return new ServiceError('wait', message, { cause });
}
