import type { Tokens } from '../auth/tokens.ts';
import type { SendCompanyEvent } from '../changes/app-events.ts';
import type { Logger } from '../runtime/logging.ts';
import type { ServiceApi } from '../service/service-api.ts';
import type { Instance } from '../store/instances.ts';
import type { List, ListClaim, ListKey } from '../store/runs.ts';
import type { Stores } from '../store/stores.ts';
import type { CheckOutcome } from './check.ts';
import type { Resource } from './resource.ts';

export interface SyncParts extends Pick<Stores, 'instances' | 'dueLists' | 'runs' | 'pages' | 'deletions'> {
  api: ServiceApi;
  tokens: Tokens;
  resources: readonly Resource[];
  /** The default pause between two full runs of a list, in milliseconds. */
  intervalMs: number;
  /** The pause between two checks of a list, in milliseconds; 0: never. */
  checkIntervalMs: number;
  /** Requests a minute of a company; undefined while nobody knows. */
  limitOf: (company: string) => Promise<number | undefined>;
  /** Gets lists with pending changes; `isOver` when no more follow for now. */
  onChanges: (list: ListKey, isOver: boolean) => void;
  /** Gets how long a run waited for a permit, in milliseconds. */
  onSlot?: (slot: { waitMs: number }) => void;
  onPage?: (page: { resource: string }) => void;
  onCheck?: (end: { outcome: CheckOutcome }) => void;
  onRunEnd?: (end: { resource: string; outcome: 'finished' | 'failed' }) => void;
  onEvent?: SendCompanyEvent | undefined;
  now?: () => number;
}

export interface SliceWork {
  instance: Instance;
  resource: Resource;
  claim: ListClaim;
  /** The list when it was claimed, and what checks of this slice have changed. */
  list: List;
}

/** The surroundings of a time slice of a worker. */
export interface SliceContext {
  logger: Logger;
  /** Aborted when the process shuts down. */
  signal: AbortSignal;
  /** Whether other jobs wait for this job's slot. */
  othersWait(): boolean;
}

/**
 * The end of a slice, with the run's pages so far: `ended` ends the job, `wait` continues at `until` (milliseconds since
 * 1970), `yield` continues after other jobs.
 */
export type SliceOutcome =
  | { kind: 'ended' }
  | { kind: 'wait'; until: number; pages: number }
  | { kind: 'yield'; pages: number };
