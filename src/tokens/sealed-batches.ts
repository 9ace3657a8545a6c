import type { SealedTokens, TokenStore } from '../store/tokens.ts';

/** Instances of one batch: few enough to keep the app from writing for a moment only, where a batch is written. */
const BATCH = 100;

/** The sealed texts of all instances, in the order of their ids; what changes meanwhile may or may not be met. */
export async function* sealedBatches(store: TokenStore): AsyncGenerator<SealedTokens[]> {
  for (let after = ''; ; ) {
    const rows = await store.listSealed(after, BATCH);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    after = last.instance_id;
  }
}
