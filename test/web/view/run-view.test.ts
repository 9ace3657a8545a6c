import { expect, it } from 'vitest';
import { runRow } from '../../../src/web/view/run-view.ts';
import { instanceStatus, listStatus, runJson } from '../status-fixtures.ts';

const SITE = { support: 'help@test.example', resources: [] };
const OPEN = { state: 'waiting', finished_at: null } as const;

it.each([
  [OPEN, {}, 'Waiting'],
  [{ ...OPEN, state: 'running' }, {}, 'Copying'],
  [{ ...OPEN, error_kind: 'server_error' }, {}, 'Retrying'],
  [{ ...OPEN, error_kind: 'server_error' }, { status: 'paused' }, 'Paused'],
  [OPEN, { resources: { contacts: listStatus({ paused: true }) } }, 'Paused'],
  [OPEN, { status: 'needs_reauthorization' }, 'Needs authorization'],
  [{}, { status: 'paused' }, 'Finished'],
  [{ state: 'ended' }, { status: 'disconnected' }, 'Broken off'],
] as const)('the outcome of a run is what its instance and list are at: %j, %j', (run, instance, outcome) => {
  const resource = { name: 'contacts', title: 'Contacts' };
  expect(runRow(runJson(run), resource, SITE, instanceStatus(instance))).toMatchObject({
    list: 'Contacts',
    state: outcome,
  });
});
