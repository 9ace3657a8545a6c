import type { Kysely, Transaction } from 'kysely';
import type { Call } from '../support/handler-report.ts';
import { onChanges as report } from './report.ts';

interface Tables {
  handled: { resource: string; seq: number; id: string };
}

/** Writes a row of the fork's table for each change, in the transaction that moves the cursor. */
export async function onChanges(batch: Call, { db }: { db: Kysely<Tables> }) {
  await report(batch);
  const { resource, changes } = batch;
  const known = await db
    .selectFrom('handled')
    .select('seq')
    .where('resource', '=', resource)
    .where('seq', '>=', changes[0]?.seq ?? 0)
    .execute();
  if (known.length > 0) throw new Error('These were taken before.');
  return async (transaction: Transaction<Tables>) => {
    const rows = changes.map(({ seq, id }) => ({ resource, seq, id }));
    await transaction.insertInto('handled').values(rows).execute();
  };
}
