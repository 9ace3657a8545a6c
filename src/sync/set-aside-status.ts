import type { ParkedStore } from '../store/parked-batches.ts';
import type { QuarantineStore } from '../store/quarantine.ts';
import type { RunKey } from '../store/runs.ts';
import { SET_ASIDE_IN_STATUS, type SetAsideStatus } from './status-types.ts';

/** How many of each kind can be seen at all. */
export const MOST_SEEN = 100;

/** Where what is set aside is read from. */
export interface SetAsideParts {
  parked: ParkedStore;
  quarantine: QuarantineStore;
}

/** What a list has set aside, for people to look at. @param most of each kind */
export async function readSetAside(
  { parked, quarantine }: SetAsideParts,
  key: RunKey,
  most = SET_ASIDE_IN_STATUS,
): Promise<SetAsideStatus> {
  const [batchCount, itemCount] = await Promise.all([parked.count(key), quarantine.count(key)]);
  const batches = batchCount === 0 ? [] : await parked.list(key, most);
  const items = itemCount === 0 ? [] : await quarantine.list(key, most);
  return {
    parked: batchCount,
    parked_batches: batches.map(({ count, first_id, tries, error, parked_at }) => {
      return { records: count, first_id, tries, error, parked_at: new Date(parked_at).toISOString() };
    }),
    quarantined: itemCount,
    quarantined_records: items.map(({ reason, excerpt, length, first_seen_at }) => {
      return { reason, excerpt, length, first_seen_at: new Date(first_seen_at).toISOString() };
    }),
  };
}
