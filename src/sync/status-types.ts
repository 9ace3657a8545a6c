import type { WriteCounts } from '../store/outbox.ts';
import type { DayTable } from '../store/schema.ts';
import type { ErrorKind, InstanceState } from '../store/states.ts';
import type { TroubleRow } from '../store/troubles.ts';
import type { budgetStatus, handlerStatus, listJson, runJson, tokenStatus, writeJson } from './status.ts';

/** Instances on one page of the operator. */
export const INSTANCES_PER_PAGE = 50;

/** On that page, changes of a list that wait for the handler are counted up to here. */
export const MOST_PENDING_ON_PAGE = 1_000;

/** Problems of each kind in the status, and on the page of problems. */
export const PROBLEMS_IN_STATUS = 5;
export const PROBLEMS_ON_PAGE = 100;

export interface ListStatusJson extends ReturnType<typeof listJson> {
  /** Null without a handler. */
  handler: ReturnType<typeof handlerStatus> | null;
  problems: ListProblems;
}

/** Rejected records and dead letters of a list: their numbers, and the first of them. */
export interface ListProblems {
  rejected: number;
  rejected_records: { reason: string; excerpt: string; length: number; at: string }[];
  dead_letters: { id: string; error: string; at: string }[];
}

export type WriteJson = ReturnType<typeof writeJson>;

/** One full run of a list, or one check that changed something. Dates are ISO 8601 in UTC. */
export type RunJson = ReturnType<typeof runJson>;

/** The sums of a list on a day. The first copy is counted by itself. */
export interface DayJson extends Omit<DayTable, 'list' | 'day'> {
  /** In UTC: `2025-06-10`. */
  day: string;
}

/** What is wrong with an instance or a list of it. */
export interface TroubleJson extends Pick<TroubleRow, 'kind' | 'resource' | 'count' | 'detail'> {
  since: string | null;
}

/** A list on the operator's page: its problems are counted. */
export interface ListOverview extends Omit<ListStatusJson, 'problems'> {
  problems: Pick<ListProblems, 'rejected'>;
}

/** An instance on the operator's page. */
export interface InstanceOverview
  extends Pick<InstanceStatus, 'id' | 'name' | 'company_id' | 'status' | 'error_kind' | 'error' | 'budget'> {
  /** Since when it is in its state; null where nobody has noted it. */
  status_since: string | null;
  /** The worst first. */
  troubles: TroubleJson[];
  /** By the resource's name, in the order of `resources.ts`. */
  resources: Record<string, ListOverview>;
}

/** The facts of the dashboard, as `GET /instances/:id/status` answers them. */
export interface InstanceStatus {
  id: string;
  name: string;
  company_id: string | null;
  status: InstanceState;
  installed_at: string;
  /** Why the app copies nothing: the authorization, or the app's own `store` or `redis`; null while it copies. */
  error_kind: ErrorKind | null;
  /** The error, in words for an operator. */
  error: string | null;
  /** The service's time, as its last answers tell it. */
  now: string;
  next_sync_at: string | null;
  /** Whether no worker process runs. */
  workers_missing: boolean;
  token: ReturnType<typeof tokenStatus>;
  budget: ReturnType<typeof budgetStatus>;
  /** What the handler wants written at the service: how many by state, and the first that wait for a person or a retry. */
  outbox: WriteCounts & { writes: WriteJson[] };
  /** Whether the copy holds any record. */
  has_copy: boolean;
  /** Whether the app is deleting a copy. */
  deleting_copy: boolean;
  /** By the resource's name, in the order of `resources.ts`. */
  resources: Record<string, ListStatusJson>;
}
