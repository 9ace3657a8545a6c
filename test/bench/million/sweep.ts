import type { Database } from '../../../src/store/database.ts';
import { DeletionStore } from '../../../src/store/deletions.ts';
import { LIST_OF, type RunClaim, RunStore } from '../../../src/store/runs.ts';

/** As many as the app marks at a time. */
const BATCH = 100;

/** Marks what the run did not see, as at its end, and ends it. @returns how many there were, and how long it took */
export async function sweep(db: Database, claim: RunClaim): Promise<{ deleted: number; ms: number }> {
  const deletions = new DeletionStore(db);
  const startedAt = performance.now();
  let deleted = 0;
  for (let after: number | null = 0; after !== null; ) {
    const unseen = await deletions.unseen(claim, after, BATCH);
    after = unseen.after;
    if (unseen.records.length === 0) continue;
    // The integrator's logic gets them parsed.
    for (const { document } of unseen.records) JSON.parse(document);
    await deletions.mark(
      claim,
      unseen.records.map(({ seq }) => seq),
      Date.now(),
    );
    deleted += unseen.records.length;
  }
  const ms = performance.now() - startedAt;
  await new RunStore(db).finish(claim, Date.now());
  return { deleted, ms };
}

/**
 * Begins a run that has seen everything but each so-many-th record: they lie as far apart as they can.
 *
 * @param every from 2
 * @param offset below `every`: which of them
 */
export async function seeAllBut(
  db: Database,
  claim: RunClaim,
  { every, offset, records }: { every: number; offset: number; records: number },
): Promise<RunClaim> {
  const runs = new RunStore(db);
  await runs.start(claim, Date.now());
  const run = await runs.claim(claim);
  if (run === undefined) throw new Error('the run did not start');
  const see = db.prepare<[string, string, number, number]>(
    `insert into seen_ranges (list, first, last) values (${LIST_OF}, ?, ?)`,
  );
  await db.writeAtOnce(() => {
    let first = 1;
    for (let missing = offset === 0 ? every : offset; missing <= records; missing += every) {
      if (missing > first) see.run(claim.instanceId, claim.resource, first, missing - 1);
      first = missing + 1;
    }
    if (first <= records) see.run(claim.instanceId, claim.resource, first, records);
  });
  return { ...claim, fence: run.fence };
}
