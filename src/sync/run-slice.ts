import { setTimeout as sleep } from 'node:timers/promises';
import type { RunKey } from '../store/runs.ts';
import { markDeletions } from './deletions.ts';
import { syncPage } from './page.ts';
import { endSlice } from './slice-failure.ts';
import type { SliceContext, SliceOutcome, SyncParts } from './slice-parts.ts';

/** A slice gives way to other companies after so many pages, or so long. */
const SLICE_PAGES = 25;
const SLICE_MS = 5_000;

/** Waits up to this long are sat out, in milliseconds; longer ones free the worker's place. */
const SHORT_WAIT_MS = 1_000;

/**
 * Works on a run for a while: page after page, as long as the budget grants requests and the slice lasts; after
 * the last page, the deletions. Everything it knows afterwards is in the store.
 *
 * @throws only what is wrong with this process (the database or Redis cannot be reached)
 */
export async function runSlice(parts: SyncParts, key: RunKey, context: SliceContext): Promise<SliceOutcome> {
  const now = parts.now ?? Date.now;
  const resource = parts.resources.find(({ name }) => name === key.resource);
  const instance = await parts.instances.find(key.instanceId);
  const claimed = await parts.runs.claim(key);
  // Paused, disconnected, finished by another worker, or a resource that this version of the app does not know.
  if (claimed === undefined || instance === undefined || resource === undefined) return { kind: 'ended' };
  const work = { instance, resource, claim: { ...key, fence: claimed.fence } };

  const endsAt = now() + SLICE_MS;
  let run = claimed;
  try {
    for (let pages = 0; run.phase === 'pages'; ) {
      if (context.signal.aborted || pages >= SLICE_PAGES || now() >= endsAt) {
        await parts.runs.wait(work.claim, { for: 'turn', until: null });
        return { kind: 'yield' };
      }
      const step = await syncPage(parts, work, run, context);
      if (step.kind === 'lost') {
        // If it was paused, the run is ours still, and waits; if another worker has it, this changes nothing.
        await parts.runs.wait(work.claim, { for: 'turn', until: null });
        return { kind: 'ended' };
      }
      if (step.kind === 'written') {
        run = step.run;
        pages++;
        continue;
      }
      if (step.waitMs > SHORT_WAIT_MS) {
        await parts.runs.wait(work.claim, { for: 'limit', until: now() + step.waitMs });
        return { kind: 'wait', ms: step.waitMs };
      }
      await sleep(step.waitMs, undefined, { signal: context.signal });
    }
    const held = await markDeletions(parts, work, context);
    if (held && (await parts.runs.finish(work.claim, now()))) {
      context.logger.info({ pages: run.pages, records: run.records }, 'the run is finished');
      parts.onRunEnd?.({ resource: resource.name, outcome: 'finished' });
    }
    return { kind: 'ended' };
  } catch (error) {
    return endSlice(parts, work.claim, run, error, context);
  }
}
