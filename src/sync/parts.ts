import type { Tokens } from '../auth/tokens.ts';
import type { TellEvent } from '../changes/app-events.ts';
import type { Logger } from '../runtime/logging.ts';
import type { ServiceApi } from '../service/service-api.ts';
import type { DeletionStore } from '../store/deletions.ts';
import type { Instance, InstanceStore } from '../store/instances.ts';
import type { PageStore } from '../store/pages.ts';
import type { ListKey, RunClaim, RunStore } from '../store/runs.ts';
import type { Resource } from './resource.ts';

/** What the sync works with. */
export interface SyncParts {
  api: ServiceApi;
  tokens: Tokens;
  instances: InstanceStore;
  runs: RunStore;
  pages: PageStore;
  deletions: DeletionStore;
  resources: readonly Resource[];
  /** From the end of one run to the start of the next, in milliseconds. */
  intervalMs: number;
  /** Told that a list has changes to deliver; `isOver`: for now no more will follow. */
  onChanges: (list: ListKey, isOver: boolean) => void;
  /** Told how long a run waited for a request that the limit granted. */
  onSlot?: (slot: { waitMs: number }) => void;
  /** Told of every page that was written. */
  onPage?: (page: { resource: string }) => void;
  /** Told of every run that ended. */
  onRunEnd?: (end: { resource: string; outcome: 'finished' | 'failed' }) => void;
  /** Told what the fork's event handler is to hear. */
  onEvent?: TellEvent | undefined;
  now?: () => number;
}

/** What a slice works on. */
export interface SliceWork {
  instance: Instance;
  resource: Resource;
  claim: RunClaim;
}

/** One turn of a worker at one run. */
export interface SliceContext {
  logger: Logger;
  /** Aborted when the process shuts down: the slice ends where it can be taken up again. */
  signal: AbortSignal;
  /** Whether other jobs wait for this one's slot. */
  othersWait(): boolean;
}

/** How a slice ended; `pages` is how many the run has by now. */
export type SliceOutcome =
  /** the job is done: the run is over, or not ours */
  | { kind: 'ended' }
  /** to be taken up again at this moment, in milliseconds since 1970 */
  | { kind: 'wait'; until: number; pages: number }
  /** to be taken up again when others have had their turn */
  | { kind: 'yield'; pages: number };
