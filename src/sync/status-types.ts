import type { DisconnectOptions } from '../store/disconnect.ts';
import type { InstanceState, RunState } from '../store/states.ts';

export type { InstanceState, RunState };

/** How many instances the operator sees on a page. */
export const INSTANCES_PER_PAGE = 100;

/** How many of each kind of what is set aside the status has, and a page has lines for; of the others the number is. */
export const SET_ASIDE_IN_STATUS = 5;

/** The progress of one resource, dates as ISO 8601 in UTC. */
export interface ResourceStatus {
  state: RunState;
  /** Pages and records that the current or last run has brought. */
  pages: number;
  records: number;
  /** Records that the last finished run marked as deleted. */
  deleted: number;
  /** Records that the run could not keep. */
  skipped: number;
  /** Records in the copy, without the deleted ones. */
  stored: number;
  started_at: string | null;
  finished_at: string | null;
  /** What went wrong last, in words for an administrator, with what to do. */
  error: string | null;
  /** When a waiting run goes on, and why it waits. */
  waiting_until: string | null;
  waiting_for: 'limit' | 'retry' | 'turn' | null;
  set_aside: SetAsideStatus;
}

/** What a resource has set aside: how much, and the first of it. Dates as ISO 8601 in UTC. */
export interface SetAsideStatus {
  /** Batches that the own logic did not take. */
  parked: number;
  parked_batches: {
    records: number;
    /** Of the first of them, as the copy knows it. */
    first_id: string | null;
    tries: number;
    error: string;
    parked_at: string;
  }[];
  /** Different records that cannot be kept, as far as they are counted. */
  quarantined: number;
  quarantined_records: {
    reason: string;
    /** How the record's text begins. */
    excerpt: string;
    /** How long the text is, in UTF-16 units. */
    length: number;
    first_seen_at: string;
  }[];
}

/** The facts of the dashboard, as `GET /instances/:id/status` answers them. */
export interface InstanceStatus {
  id: string;
  name: string;
  company_id: string | null;
  status: InstanceState;
  installed_at: string;
  /** Why the instance needs attention, with what to do, or null. */
  notice: string | null;
  /** The service's time now, as far as its answers tell. */
  now: string;
  next_sync_at: string | null;
  /** Whether no worker process runs that could work on it, as far as can be told. */
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
  /** Whether anything is kept of its records, be it of deleted ones, or set aside. */
  has_copy: boolean;
  /** Whether that is being deleted, as it was asked for. */
  deleting_copy: boolean;
  /** By the resource's name in the registry, in its order. */
  resources: Record<string, ResourceStatus>;
}

/** What an administrator does to an instance, and what the pages read. Each action answers whether the state allowed it. */
export interface InstanceControl {
  status(instanceId: string): Promise<InstanceStatus | undefined>;
  /** What it has set aside, a hundred of each kind and list at the most, by the resource's name. */
  setAside(instanceId: string): Promise<Record<string, SetAsideStatus>>;
  syncNow(instanceId: string): Promise<boolean>;
  pause(instanceId: string): Promise<boolean>;
  resume(instanceId: string): Promise<boolean>;
  /** Hands what is parked to the own logic once more, at once. */
  retryParked(instanceId: string): Promise<boolean>;
  /** Deletes the tokens, stops everything and ends other browsers' access; with `deleteData` the copied records, too. */
  disconnect(instanceId: string, options: DisconnectOptions): Promise<boolean>;
}
