import { setTimeout as sleep } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';

/** How long one call computes, or its transaction waits, in milliseconds. */
const COMPUTING_MS = 1_000;
const HOLDING_MS = 4_900;

const WORK = {
  none: undefined,
  async computes() {
    for (const startedAt = performance.now(); performance.now() - startedAt < COMPUTING_MS; );
  },
  async holds() {
    return async (tx: Kysely<unknown>) => {
      await sql`update settings set value = value`.execute(tx);
      await sleep(HOLDING_MS);
    };
  },
};

/** The handler of the bench `handler`: BENCH_WORK says what it does all the time. */
export const onChanges = WORK[process.env.BENCH_WORK as keyof typeof WORK];
