import { refreshExpiry } from '../auth/expiry.ts';
import type { ServiceClock } from '../service/headers.ts';
import type { Database } from '../store/database.ts';
import { readFigures } from '../store/figures.ts';
import type { InstanceState, ListState } from '../store/states.ts';
import { OVERDUE_AFTER_MS } from '../store/troubles.ts';

/** An alarm on a missing state needs a zero. */
const NO_INSTANCES: Record<InstanceState, number> = {
  active: 0,
  paused: 0,
  needs_reauthorization: 0,
  disconnected: 0,
};

const NO_LISTS: Record<ListState, number> = { idle: 0, waiting: 0, running: 0, failed: 0 };

/** The same for writes that wait for a person. */
const NO_WRITES = { pending: 0, sending: 0, refused: 0, unknown: 0 };

/**
 * Reads the metrics that only the store knows.
 *
 * @param parts.resources the synced resources
 * @returns numbers over all instances; ages and remaining times in milliseconds
 */
export async function collectFigures(parts: {
  db: Database;
  clock: ServiceClock;
  resources: readonly { name: string }[];
  consumers: readonly { name: string }[];
}) {
  const now = parts.clock.now();
  const names = parts.resources.map(({ name }) => name);
  const {
    instances,
    writes,
    writesSince,
    pendingSince,
    checkedAt,
    failingSince,
    lists,
    oldestRefreshToken,
    overdue,
    ...figures
  } = await readFigures(
    parts.db,
    now,
    OVERDUE_AFTER_MS,
    names,
    parts.consumers.map(({ name }) => name),
  );
  const ageMs = (since: number | null) => (since === null ? 0 : Math.max(0, Date.now() - since));
  return {
    ...figures,
    instances: { ...NO_INSTANCES, ...instances },
    lists: { ...NO_LISTS, ...lists },
    listFailsMs: ageMs(failingSince),
    writes: { ...NO_WRITES, ...writes },
    writesLagMs: ageMs(writesSince),
    listAgeMs: ageMs(checkedAt),
    consumerLagMs: Object.fromEntries(
      Object.entries(pendingSince).map(([name, since]) => [name, ageMs(since)]),
    ),
    refreshTokenEndsInMs: oldestRefreshToken === null ? undefined : refreshExpiry(oldestRefreshToken) - now,
    refreshTokensOverdue: overdue,
  };
}
