import type { InstanceStatus, ListStatusJson, RunJson } from '../../src/sync/status-types.ts';

/** The time that fixtures are written for. */
export const NOW = Date.parse('2025-06-10T12:00:00Z');

/** A moment, in milliseconds from the fixtures' time, as ISO 8601. */
export function at(offsetMs: number): string {
  return new Date(NOW + offsetMs).toISOString();
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** A handler that has taken every change. */
export const HANDLER = { pending: 0, dead_letters: 0, last_error: null, next_try_at: null };

/** A list that was copied once, with changes. */
export function listStatus(changes: Partial<ListStatusJson> = {}): ListStatusJson {
  return {
    state: 'idle',
    pages: 41,
    records: 4_012,
    deleted: 0,
    rejected: 0,
    stored: 4_012,
    started_at: at(-6 * MINUTE_MS),
    finished_at: at(-5 * MINUTE_MS),
    error_kind: null,
    error: null,
    failing_since: null,
    paused: false,
    interval_minutes: 60,
    next_sync_at: at(55 * MINUTE_MS),
    waiting_until: null,
    waiting_for: null,
    missing: 0,
    held_deletions: 0,
    checked_at: at(-20_000),
    full_at: at(-5 * MINUTE_MS),
    checks: 'often',
    handler: null,
    problems: { rejected: 0, rejected_records: [], dead_letters: [] },
    ...changes,
  };
}

/** An instance that is up to date, with changes. */
export function instanceStatus(changes: Partial<InstanceStatus> = {}): InstanceStatus {
  return {
    id: 'ins_1',
    name: 'Riverside Dental',
    company_id: 'cmp_riverside',
    status: 'active',
    installed_at: at(-30 * DAY_MS),
    error_kind: null,
    error: null,
    now: at(0),
    next_sync_at: at(55 * MINUTE_MS),
    workers_missing: false,
    has_copy: true,
    deleting_copy: false,
    token: {
      access_expires_at: at(42 * MINUTE_MS),
      refresh_issued_at: at(-30 * DAY_MS),
      refresh_expires_at: at(153 * DAY_MS),
      refresh_due_at: at(152.3 * DAY_MS),
      rotations: 0,
      refreshes: 12,
      failures: 0,
    },
    budget: { limit: 120, remaining: 87, reset_at: at(31_000), burst_remaining: 60, blocked_until: null },
    outbox: { pending: 0, sending: 0, refused: 0, unknown: 0, discarded: 0, writes: [] },
    resources: { contacts: listStatus(), conversations: listStatus({ stored: 9_120, records: 9_120 }) },
    ...changes,
  };
}

/** A finished run, with changes. */
export function runJson(changes: Partial<RunJson> = {}): RunJson {
  return {
    id: 1,
    kind: 'full',
    state: 'finished',
    started_at: at(-6 * MINUTE_MS),
    finished_at: at(-5 * MINUTE_MS),
    pages: 2,
    records: 180,
    created: 12,
    changed: 3,
    deleted: 1,
    rejected: 0,
    requests: 2,
    refused: 0,
    missing: 0,
    held: 0,
    error_kind: null,
    error: null,
    ...changes,
  };
}
