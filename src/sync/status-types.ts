import type { ErrorKind, InstanceState, ListState, RunState } from '../store/states.ts';
import type { DisconnectOptions } from '../store/tokens.ts';

/** How many instances the operator sees on a page. */
export const INSTANCES_PER_PAGE = 100;

/** How many of each kind of problem the status has, and how many their page. */
export const PROBLEMS_IN_STATUS = 5;
export const PROBLEMS_ON_PAGE = 100;

/** The progress of one list, dates as ISO 8601 in UTC. */
export interface ListStatusJson {
  state: ListState;
  /** Pages and records that the open or last run has brought. */
  pages: number;
  records: number;
  /** Records that the run has marked as deleted. */
  deleted: number;
  /** Records that the run could not keep. */
  rejected: number;
  /** Live records in the copy. */
  stored: number;
  started_at: string | null;
  finished_at: string | null;
  error_kind: ErrorKind | null;
  /** What exactly went wrong last, in words for an operator. */
  error: string | null;
  /** Since when no page has come because of failures; null while none fails. */
  failing_since: string | null;
  /** Whether an administrator has paused this list alone. */
  paused: boolean;
  /** From the end of one run to the start of the next. */
  interval_minutes: number;
  /** When the next run starts by itself; null while one is open, or none will. */
  next_sync_at: string | null;
  /** When a waiting run goes on, and why it waits. */
  waiting_until: string | null;
  waiting_for: 'limit' | 'retry' | 'turn' | null;
  /** Deletions that the last whole run holds back. */
  held_deletions: number;
  /** Null without a handler. */
  handler: HandlerStatus | null;
  problems: ListProblems;
}

/** How far the handler has come with a list. */
export interface HandlerStatus {
  /** Changes that it has not taken. */
  pending: number;
  dead_letters: number;
  last_error: string | null;
  /** When a change that failed is tried again. */
  next_try_at: string | null;
}

/** What of a list cannot be kept or delivered: how much, and the first of it. */
export interface ListProblems {
  rejected: number;
  rejected_records: { reason: string; excerpt: string; length: number; at: string }[];
  dead_letters: { id: string; error: string; at: string }[];
}

/** One run of a list, dates as ISO 8601 in UTC. */
export interface RunJson {
  id: number;
  state: RunState;
  started_at: string;
  finished_at: string | null;
  pages: number;
  records: number;
  created: number;
  changed: number;
  deleted: number;
  /** Records that could not be kept. */
  rejected: number;
  /** Requests for pages, and how many of them the service refused with 429. */
  requests: number;
  refused: number;
  /** Deletions that the run holds back. */
  held: number;
  error_kind: ErrorKind | null;
  error: string | null;
}

/** The facts of the dashboard, as `GET /instances/:id/status` answers them. */
export interface InstanceStatus {
  id: string;
  name: string;
  company_id: string | null;
  status: InstanceState;
  installed_at: string;
  /** Why nothing of the instance is copied, or null: its authorization, or trouble of the app itself (`store`, `redis`). */
  error_kind: ErrorKind | null;
  /** What exactly went wrong, in words for an operator. */
  error: string | null;
  /** The service's time now, as far as its answers tell. */
  now: string;
  next_sync_at: string | null;
  /** Whether no worker process runs that could work on it. */
  workers_missing: boolean;
  token: {
    access_expires_at: string | null;
    refresh_issued_at: string | null;
    refresh_expires_at: string | null;
    refresh_due_at: string | null;
    /** How often the refresh token was exchanged for a new one. */
    rotations: number;
    /** How often the access token was renewed. */
    refreshes: number;
  };
  budget: {
    limit: number | null;
    remaining: number | null;
    reset_at: string | null;
    burst_remaining: number | null;
    blocked_until: string | null;
  };
  /** Whether anything is kept of its records. */
  has_copy: boolean;
  /** Whether a copy is being deleted. */
  deleting_copy: boolean;
  /** By the resource's name, in the order of `resources.ts`. */
  resources: Record<string, ListStatusJson>;
}

/** What an administrator does to an instance, and what the pages read. Each action answers whether the state allowed it. */
export interface InstanceControl {
  status(instanceId: string): Promise<InstanceStatus | undefined>;
  /** What cannot be kept or delivered, by the resource's name. */
  problems(instanceId: string): Promise<Record<string, ListProblems>>;
  /** The newest runs by the resource's name, newest first. */
  runs(instanceId: string): Promise<Record<string, RunJson[]>>;
  syncNow(instanceId: string, resource?: string): Promise<boolean>;
  /** Stops the instance, or one list of it, before the next request. */
  pause(instanceId: string, resource?: string): Promise<boolean>;
  resume(instanceId: string, resource?: string): Promise<boolean>;
  /** @param minutes from the end of one run of the list to the start of the next; null: as configured */
  setInterval(instanceId: string, resource: string, minutes: number | null): Promise<boolean>;
  /** Erases a record for good: its document and dead letters go, the handler gets `deleted`, and the id is kept out. */
  erase(instanceId: string, resource: string, record: string): Promise<boolean>;
  /** Hands dead letters to the handler once more. */
  retry(instanceId: string, resource?: string): Promise<boolean>;
  /** Hands the copy, one list or one record to the handler again. */
  replay(instanceId: string, resource?: string, record?: string): Promise<boolean>;
  /** Marks what the last whole run holds back as deleted. */
  confirmDeletions(instanceId: string, resource?: string): Promise<boolean>;
  /** Deletes the tokens, stops everything and ends other browsers' access; with `deleteData` the copy, too. */
  disconnect(instanceId: string, options: DisconnectOptions): Promise<boolean>;
}
