import type { Run } from '../store/runs.ts';
import type { ErrorKind, InstanceState, ListState } from '../store/states.ts';

/** Instances on one page of the operator. */
export const INSTANCES_PER_PAGE = 100;

/** Problems of each kind in the status, and on the page of problems. */
export const PROBLEMS_IN_STATUS = 5;
export const PROBLEMS_ON_PAGE = 100;

/** Counts of a run, see `RunTable`. */
type RunCounts = Pick<Run, 'pages' | 'records' | 'deleted' | 'rejected'>;

/** The progress of one list: its open or last run, and its copy. Dates are ISO 8601 in UTC. */
export interface ListStatusJson extends RunCounts, Pick<Run, 'error_kind' | 'waiting_for'> {
  state: ListState;
  /** Live records in the copy. */
  stored: number;
  started_at: string | null;
  finished_at: string | null;
  /** The last error, in words for an operator. */
  error: string | null;
  /** Since when errors have kept every page from coming; null while none does. */
  failing_since: string | null;
  /** Whether an administrator has paused this list alone. */
  paused: boolean;
  /** From the end of one run to the start of the next. */
  interval_minutes: number;
  /** When the next run starts by itself; null while one is open, or none will. */
  next_sync_at: string | null;
  /** When a waiting run continues. */
  waiting_until: string | null;
  /** Deletions that the last whole run holds. */
  held_deletions: number;
  /** Null without a handler. */
  handler: HandlerStatus | null;
  problems: ListProblems;
}

/** The handler's progress with a list. */
export interface HandlerStatus {
  pending: number;
  dead_letters: number;
  last_error: string | null;
  next_try_at: string | null;
}

/** Rejected records and dead letters of a list: their numbers, and the first of them. */
export interface ListProblems {
  rejected: number;
  rejected_records: { reason: string; excerpt: string; length: number; at: string }[];
  dead_letters: { id: string; error: string; at: string }[];
}

/** One run of a list. Dates are ISO 8601 in UTC. */
export interface RunJson
  extends RunCounts,
    Pick<Run, 'id' | 'state' | 'created' | 'changed' | 'requests' | 'refused' | 'held' | 'error_kind'> {
  started_at: string;
  finished_at: string | null;
  error: string | null;
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
  token: {
    access_expires_at: string | null;
    refresh_issued_at: string | null;
    refresh_expires_at: string | null;
    refresh_due_at: string | null;
    /** New refresh tokens so far. */
    rotations: number;
    /** New access tokens so far. */
    refreshes: number;
  };
  budget: {
    limit: number | null;
    remaining: number | null;
    reset_at: string | null;
    burst_remaining: number | null;
    blocked_until: string | null;
  };
  /** Whether the copy holds any record. */
  has_copy: boolean;
  /** Whether the app is deleting a copy. */
  deleting_copy: boolean;
  /** By the resource's name, in the order of `resources.ts`. */
  resources: Record<string, ListStatusJson>;
}
