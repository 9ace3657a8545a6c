import { expect, test } from 'vitest';
import { summarize, summaryTable } from '../../src/demo/summary.ts';
import type { SyncedCompany } from '../../src/demo/sync-company.ts';
import type { InstanceStatus, ListStatusJson } from '../../src/sync/status-types.ts';

const RESOURCE: ListStatusJson = {
  state: 'idle',
  pages: 3,
  records: 250,
  deleted: 0,
  rejected: 0,
  stored: 250,
  started_at: null,
  finished_at: null,
  error_kind: null,
  error: null,
  failing_since: null,
  paused: false,
  interval_minutes: 60,
  next_sync_at: null,
  waiting_until: null,
  waiting_for: null,
  held_deletions: 0,
  handler: null,
  problems: { rejected: 0, rejected_records: [], dead_letters: [] },
};

function synced(name: string): SyncedCompany {
  const status: InstanceStatus = {
    id: 'ins_1',
    name,
    company_id: 'cmp_1',
    status: 'active',
    installed_at: '',
    error_kind: null,
    error: null,
    now: '',
    next_sync_at: null,
    workers_missing: false,
    has_copy: true,
    deleting_copy: false,
    token: {
      access_expires_at: null,
      refresh_issued_at: null,
      refresh_expires_at: null,
      refresh_due_at: null,
      rotations: 0,
      refreshes: 2,
    },
    budget: { limit: null, remaining: null, reset_at: null, burst_remaining: null, blocked_until: null },
    resources: { contacts: RESOURCE, conversations: { ...RESOURCE, pages: 2, records: 120 } },
  };
  return { company: { id: 'cmp_1', name, teammates: [], counts: {} }, status };
}

function seen(...statuses: number[]) {
  return statuses.map((status) => ({ path: '/contacts', status, company_id: 'cmp_1' }));
}

test('adds up what the app says it did and what the sandbox says it saw', () => {
  expect(summarize(synced('Acme'), seen(200, 200, 429, 200, 401))).toEqual({
    name: 'Acme',
    records: 370,
    pages: 5,
    requests: 5,
    refused: 1,
    renewed: 2,
  });
});

test('the table lines up, with the sum of all companies below', () => {
  const rows = [summarize(synced('Acme'), seen(200)), summarize(synced('A longer name'), seen(200, 429))];
  const [heading = '', first = '', second = '', , last] = summaryTable(rows, 12.34).split('\n');
  expect(new Set([heading.length, first.length, second.length]).size).toBe(1);
  expect(heading.trim().split(/ {2,}/)).toEqual(['records', 'pages', 'requests', '429s', 'tokens renewed']);
  expect(first.trim().split(/ {2,}/)).toEqual(['Acme', '370', '5', '1', '0', '2']);
  expect(second.trim().split(/ {2,}/)).toEqual(['A longer name', '370', '5', '2', '1', '2']);
  expect(last).toBe('  740 records in 12.3 s: nothing is missing, nothing is double.');
});
