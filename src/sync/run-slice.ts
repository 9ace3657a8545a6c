import type { Run, RunKey } from '../store/runs.ts';
import { markDeletions } from './deletions.ts';
import { retryParked } from './own-logic-parking.ts';
import { writePage } from './page.ts';
import { type NoPage, PageReader } from './page-reader.ts';
import { checkProgress } from './run-progress.ts';
import { endSlice } from './slice-failure.ts';
import type { SliceContext, SliceOutcome, SliceWork, SyncParts } from './slice-parts.ts';
import { beginTurn } from './turn.ts';

/**
 * Works on a run for a while: batches that are parked; then page after page, as long as the budget grants requests and
 * the slice lasts; after the last page, the deletions. Everything it knows afterwards is in the store.
 *
 * @throws only what is wrong with this process (the database or Redis cannot be reached)
 */
export async function runSlice(parts: SyncParts, key: RunKey, context: SliceContext): Promise<SliceOutcome> {
  const now = parts.now ?? Date.now;
  const resource = parts.resources.find(({ name }) => name === key.resource);
  const instance = await parts.instances.find(key.instanceId);
  // Also a disconnected one stays in the database.
  if (instance === undefined) return { kind: 'unknown' };
  const claimed = await parts.runs.claim(key);
  // Paused, disconnected, finished by another worker, or a resource that this version of the app does not know.
  if (claimed === undefined || resource === undefined) return { kind: 'ended' };
  const work = { instance, resource, claim: { ...key, fence: claimed.fence } };

  let run = claimed;
  try {
    if (await retryParked(parts, work, run, beginTurn(context.hasRoom, now), context)) {
      await parts.runs.wait(work.claim, { for: 'turn', until: null });
      return { kind: 'yield', pages: run.pages };
    }
  } catch (error) {
    return await endSlice(parts, work.claim, run, error, context);
  }
  const isTurnOver = beginTurn(context.hasRoom, now);
  const reader = new PageReader(parts, work, run, context, isTurnOver);
  try {
    while (run.phase === 'pages') {
      if (reader.isOver) {
        await parts.runs.wait(work.claim, { for: 'turn', until: null });
        return { kind: 'yield', pages: run.pages };
      }
      await checkProgress(parts, key, run);
      const copied = await copyPage(parts, work, run, reader, context);
      if ('until' in copied) {
        const isAsked = copied.isBlocked && run.error !== null;
        await parts.runs.wait(work.claim, { for: isAsked ? 'retry' : 'limit', until: copied.until });
        return { kind: 'wait', until: copied.until, pages: run.pages };
      }
      if ('isLost' in copied) {
        // As below: it was paused, or another worker has it.
        await parts.runs.wait(work.claim, { for: 'turn', until: null });
        return { kind: 'ended' };
      }
      run = copied.run;
    }
    const marking = await markDeletions(parts, work, run, isTurnOver, context);
    if (marking === 'done' && (await parts.runs.finish(work.claim, now()))) {
      await parts.quarantine.forgetUnseen(key, run.started_at ?? 0);
      context.logger.info({ pages: run.pages, records: run.records }, 'the run is finished');
      parts.onRunEnd?.({ resource: resource.name, outcome: 'finished' });
      return { kind: 'ended' };
    }
    // If it was paused, the run is ours still, and waits; if another worker has it, this changes nothing.
    await parts.runs.wait(work.claim, { for: 'turn', until: null });
    return marking === 'over' ? { kind: 'yield', pages: run.pages } : { kind: 'ended' };
  } catch (error) {
    return await endSlice(parts, work.claim, run, error, context, reader.isOfPage(error));
  } finally {
    await reader.drop();
  }
}

/** Nothing of the page is held on to when it is written: the next one may take its time. */
async function copyPage(
  parts: SyncParts,
  work: SliceWork,
  run: Run,
  reader: PageReader,
  context: SliceContext,
): Promise<{ run: Run } | NoPage> {
  const read = await reader.read(run);
  if (!('page' in read)) return read;
  // Parsing and writing keep the event loop: the next request goes first.
  const written = await context.turns.within(run.pages, (endTurn) => {
    const page = reader.parse(read.page);
    // Own logic takes its time.
    if (parts.ownLogic !== undefined) endTurn();
    return writePage(parts, work, run, page, context);
  });
  return written === undefined ? { isLost: true } : { run: written };
}
