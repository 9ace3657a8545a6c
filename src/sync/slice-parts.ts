import type { Logger } from 'pino';
import type { Tokens } from '../auth/tokens.ts';
import type { ServiceClient } from '../client/calls/call-types.ts';
import type { ClientFor } from '../client/calls/service-client.ts';
import type { ServiceApi } from '../client/service-api.ts';
import type { DeletionStore } from '../store/deletions.ts';
import type { InDoubtStore } from '../store/in-doubt.ts';
import type { Instance, InstanceStore } from '../store/instances.ts';
import type { PageStore } from '../store/pages.ts';
import type { ParkedStore } from '../store/parked-batches.ts';
import type { QuarantineStore } from '../store/quarantine.ts';
import type { RunClaim, RunStore } from '../store/runs.ts';
import type { OwnLogic } from './own-logic.ts';
import type { PageGate } from './page-gate.ts';
import type { Resource } from './resources.ts';
import type { SlotWaits } from './slot-waits.ts';
import type { WriteTurns } from './write-turns.ts';

/** What the sync works with. */
export interface SyncParts {
  api: ServiceApi;
  tokens: Tokens;
  instances: InstanceStore;
  runs: RunStore;
  pages: PageStore;
  deletions: DeletionStore;
  parked: ParkedStore;
  inDoubt: InDoubtStore;
  quarantine: QuarantineStore;
  resources: readonly Resource[];
  /** Undefined where there is none: then nothing is told, and nothing written for it. */
  ownLogic: OwnLogic | undefined;
  /** How long a call of it may take, without the calls of the service in it, in milliseconds. */
  ownLogicTimeoutMs: number;
  /** Makes what the own logic calls the service with. */
  serviceFor(whose: ClientFor): ServiceClient;
  /** Told of every request that the limit grants to the sync, how long its run has waited for it. */
  onSlot?: (slot: { waitMs: number }) => void;
  /** Told of every page that was written. */
  onPage?: (page: { resource: string; records: number }) => void;
  /** Told of every run that ended. */
  onRunEnd?: (end: { resource: string; outcome: 'finished' | 'failed' }) => void;
  /** Leaves secrets out of an error's message, before it is stored and shown. */
  hideSecrets?: (text: string) => string;
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
  /** Whether the process has places to spare, so that nobody waits for this one's. */
  hasRoom(): boolean;
  /** How many pages this process has under way. */
  gate: PageGate;
  /** When those that were read are written. */
  turns: WriteTurns;
  waits: SlotWaits;
}

/** How a slice ended; `pages` is how many the run has by now. */
export type SliceOutcome =
  /** the run is over, or is not ours, or not to be worked on: the job is done */
  | { kind: 'ended' }
  /** the database knows no such instance: the job is another database's */
  | { kind: 'unknown' }
  /** to be taken up again at this moment, in milliseconds since 1970 */
  | { kind: 'wait'; until: number; pages: number }
  /** to be taken up again when others have had their turn */
  | { kind: 'yield'; pages: number };
