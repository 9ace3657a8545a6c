import { expect, test } from 'vitest';
import { summarize, summaryTable } from '../../src/demo/summary.ts';
import type { InstanceStatus } from '../../src/sync/status-types.ts';

const STATUS = {
  token: { refreshes: 2 },
  resources: { contacts: { pages: 3, records: 250 }, conversations: { pages: 2, records: 120 } },
} as unknown as InstanceStatus;

function synced(name: string) {
  return { company: { id: 'cmp_1', name, teammates: [], counts: {} }, status: STATUS };
}

function seen(...statuses: number[]) {
  return statuses.map((status) => ({ path: '/contacts', status, company_id: 'cmp_1' }));
}

test('adds up the figures of the app and the journal of the sandbox', () => {
  expect(summarize(synced('Acme'), seen(200, 200, 429, 200, 401))).toEqual({
    name: 'Acme',
    records: 370,
    pages: 5,
    requests: 5,
    refused: 1,
    renewed: 2,
  });
});

test('the table has aligned columns, and the total below', () => {
  const rows = [summarize(synced('Acme'), seen(200)), summarize(synced('A longer name'), seen(200, 429))];
  const [heading = '', first = '', second = '', , last] = summaryTable(rows, 12.34).split('\n');
  expect(new Set([heading.length, first.length, second.length]).size).toBe(1);
  expect(heading.trim().split(/ {2,}/)).toEqual(['records', 'pages', 'requests', '429s', 'tokens renewed']);
  expect(first.trim().split(/ {2,}/)).toEqual(['Acme', '370', '5', '1', '0', '2']);
  expect(second.trim().split(/ {2,}/)).toEqual(['A longer name', '370', '5', '2', '1', '2']);
  expect(last).toBe('  740 records in 12.3 s: nothing is missing, nothing is double.');
});
