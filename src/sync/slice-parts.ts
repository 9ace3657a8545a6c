import type { Logger } from 'pino';
import type { ServiceClient } from '../client/calls/call-types.ts';
import type { ClientFor } from '../client/calls/service-client.ts';
import type { ServiceApi } from '../client/service-api.ts';
import type { DeletionStore } from '../store/deletions.ts';
import type { InstanceStore } from '../store/instances.ts';
import type { PageStore } from '../store/pages.ts';
import type { RunStore } from '../store/runs.ts';
import type { Tokens } from '../tokens/tokens.ts';
import type { OwnLogic } from './own-logic.ts';
import type { Resource } from './resources.ts';

/** What the sync works with. */
export interface SyncParts {
  api: ServiceApi;
  tokens: Tokens;
  instances: InstanceStore;
  runs: RunStore;
  pages: PageStore;
  deletions: DeletionStore;
  resources: readonly Resource[];
  ownLogic: OwnLogic;
  /** Makes what the own logic calls the service with. */
  serviceFor(whose: ClientFor): ServiceClient;
  /** Told of every permit how long its run waited for it, in milliseconds, over the delays of its job, too. */
  onSlot?: (slot: { waitMs: number }) => void;
  /** Told of every page that was written. */
  onPage?: (page: { resource: string; records: number }) => void;
  /** Told of every run that ended. */
  onRunEnd?: (end: { resource: string; outcome: 'finished' | 'failed' }) => void;
  now?: () => number;
}

/** One turn of a worker at one run. */
export interface SliceContext {
  logger: Logger;
  /** Aborted when the process shuts down: the slice ends where it can be taken up again. */
  signal: AbortSignal;
}

/** How a slice ended. */
export type SliceOutcome =
  /** the run is over, or is not ours, or not to be worked on: the job is done */
  | { kind: 'ended' }
  /** to be taken up again after so many milliseconds */
  | { kind: 'wait'; ms: number }
  /** to be taken up again when others have had their turn */
  | { kind: 'yield' };
