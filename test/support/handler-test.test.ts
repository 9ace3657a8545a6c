import { expect, test } from 'vitest';
import { SETTINGS } from '../acceptance/handlers/crm-settings.ts';
import { startHandlerTest } from './handler-test.ts';
import { RESOURCES } from './usual-resources.ts';

const USUAL = { resources: RESOURCES, settings: () => import('./no-settings.ts') };
const TEAMMATES = [{ name: 'teammates', title: 'Teammates', route: '/teammates' }];
const FORK = { resources: TEAMMATES, settings: async () => ({ SETTINGS }) };
const CRM = { CRM_URL: 'http://127.0.0.1:1', CRM_LOGIN: 'correct horse battery' };

test('what a handler throws ends the wait for its sync', async () => {
  const { sync } = await startHandlerTest(
    async ({ resource }) => {
      if (resource === 'contacts') throw new Error('The CRM answered 500.');
    },
    { contacts: [{ id: 'crd_ada' }] },
    { fork: USUAL },
  );
  await expect(sync()).rejects.toThrow('The CRM answered 500.');
});

test('the test of a handler syncs the lists of the fork, with its settings', async () => {
  const given: unknown[] = [];
  const { sync, company } = await startHandlerTest(
    async (_batch, { settings }) => void given.push(settings),
    {},
    { fork: FORK, settings: CRM },
  );
  expect((await sync()).map(({ id }) => id).sort()).toEqual(company.teammates.map(({ id }) => id).sort());
  expect(given).toEqual([{ ...CRM, CRM_BATCH: 50 }]);
});

test('the test of a handler names the settings that it lacks', async () => {
  const { CRM_URL } = CRM;
  const started = startHandlerTest(async () => undefined, {}, { fork: FORK, settings: { CRM_URL } });
  await expect(started).rejects.toThrow('CRM_LOGIN is not set, and src/integration/settings.ts needs it');
});
