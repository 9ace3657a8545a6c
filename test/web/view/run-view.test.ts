import { describe, expect, it } from 'vitest';
import { historyRows, runRow } from '../../../src/web/view/run-view.ts';
import { at, instanceStatus, listStatus, NOW, runJson } from '../status-fixtures.ts';

const RESOURCES = ['Contacts', 'Conversations'].map((title) => ({ name: title.toLowerCase(), title }));
const SITE = { name: 'Acme Sync', support: 'help@test.example', resources: RESOURCES };
const OPEN = { state: 'waiting', finished_at: null } as const;

it.each([
  [OPEN, {}, 'Waiting'],
  [OPEN, { resources: { contacts: listStatus({ waiting_for: 'limit' }) } }, 'Copying'],
  [{ ...OPEN, state: 'running' }, {}, 'Copying'],
  [{ ...OPEN, error_kind: 'server_error' }, {}, 'Retrying'],
  [{ ...OPEN, error_kind: 'server_error' }, { status: 'paused' }, 'Paused'],
  [OPEN, { resources: { contacts: listStatus({ paused: true }) } }, 'Paused'],
  [OPEN, { status: 'needs_reauthorization' }, 'Needs authorization'],
  [{}, { status: 'paused' }, 'Finished'],
  [{ state: 'ended' }, { status: 'disconnected' }, 'Broken off'],
] as const)('the outcome of a run is what its instance and list are at: %j, %j', (run, instance, outcome) => {
  const resource = { name: 'contacts', title: 'Contacts' };
  expect(runRow(runJson(run), resource, instanceStatus(instance)).state).toBe(outcome);
});

describe('the history', () => {
  const rows = (runs: Parameters<typeof historyRows>[0]) => historyRows(runs, SITE, instanceStatus(), NOW);

  it('has a row for each sync with its lists, without zeros', () => {
    const zero = { created: 0, changed: 0, deleted: 0 };
    const shown = rows({
      contacts: [
        runJson({ id: 4, created: 1_200, changed: 0, deleted: 3 }),
        runJson({ id: 1, ...zero, started_at: at(-90 * 60_000), finished_at: at(-89 * 60_000) }),
      ],
      conversations: [
        runJson({ id: 3, ...zero, started_at: at(-6 * 60_000 + 900), finished_at: at(-60_000) }),
      ],
    });
    expect(
      shown.map(({ when, took, outcome, lists }) => [
        when.moment?.text,
        took,
        outcome?.text,
        ...lists.map(({ title, brought }) => `${title}: ${brought}`),
      ]),
    ).toEqual([
      ['6 min ago', '5 min', 'Finished', 'Contacts: 1,200 new, 3 deleted', 'Conversations: no changes'],
      ['1 h 30 min ago', '1 min', 'Finished', 'Contacts: no changes'],
    ]);
  });

  it('tells checks from syncs, and gives each list its own outcome where they differ', () => {
    const shown = rows({
      contacts: [
        runJson({ id: 3, state: 'failed', error_kind: 'timeout' }),
        runJson({ id: 2, kind: 'check', rejected: 1 }),
      ],
      conversations: [runJson({ id: 4, state: 'running', finished_at: null })],
    });
    expect(shown.map(({ kind, took, outcome }) => [kind, took, outcome?.text])).toEqual([
      ['Sync', '', undefined],
      ['Check', '1 min', 'Finished'],
    ]);
    expect(
      shown.flatMap(({ lists }) =>
        lists.map(({ brought, outcome, wrong }) => [brought, outcome.text, wrong]),
      ),
    ).toEqual([
      ['12 new, 3 changed, 1 deleted', 'Failed', 'The service did not answer in time.'],
      ['180 records so far', 'Copying', ''],
      ['12 new, 3 changed, 1 deleted', 'Finished', '1 record cannot be copied.'],
    ]);
  });

  it('makes two rows of two runs of one list', () => {
    const runs = [1, 2].map((id) => runJson({ id }));
    expect(rows({ contacts: runs })).toHaveLength(2);
  });
});
