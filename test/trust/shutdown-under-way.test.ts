import { expect, test } from 'vitest';
import { install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

test('workers that end while deletions are marked stop between two batches, and the next go on where they stopped', async () => {
  const told: unknown[] = [];
  const ended = Promise.withResolvers<void>();
  const testApp = await startTestApp({
    workers: false,
    ownLogic: async ({ deleted }) => {
      if (deleted.length === 0) return;
      told.push(...deleted.map(({ id }) => id));
      // At the next turn of the event loop: by then this batch is marked.
      if (told.length === 200) setImmediate(() => workers.close().then(ended.resolve, ended.reject));
    },
  });
  const { app, control } = testApp;
  let workers = app.startWorkers();
  const company = await control.addCompany({ name: 'Emptied', plan: 'enterprise', contacts: 1_500 });
  const browser = testApp.session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  const match = { path: '/contacts', company_id: company.id };
  await control.fault({ match, fault: { status: 200, body: { _results: [], _pagination: { next: null } } } });
  await app.control.syncNow(id);
  await ended.promise;
  const { contacts } = (await readStatus(browser, id)).resources;
  expect(contacts).toMatchObject({ state: 'waiting', waiting_for: 'turn', error: null });
  expect(contacts?.deleted).toBe(told.length);
  expect(contacts?.stored).toBe(1_500 - told.length);
  expect(contacts?.stored).toBeGreaterThan(0);

  workers = app.startWorkers();
  const { resources } = await waitForStatus(browser, id, isSynced).finally(() => workers.close());
  expect(resources.contacts).toMatchObject({ deleted: 1_500, stored: 0 });
  // Each of them once.
  expect([told.length, new Set(told).size]).toEqual([1_500, 1_500]);
});
