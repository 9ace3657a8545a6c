import { expect, test } from 'vitest';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

/** More often than a batch is tried that the own logic fails on. */
const PAUSES = 6;

let called = Promise.withResolvers<void>();
let goesOn = Promise.withResolvers<void>();
let taken = 0;

const { app, control, session } = await startTestApp({
  ownLogic: async ({ resource }, { service }) => {
    if (resource !== 'contacts') return;
    called.resolve();
    await goesOn.promise;
    await service.listTags();
    taken++;
  },
});

const tagsAsked = async () => (await control.requests()).filter(({ path }) => path === '/tags').length;

test('own logic sends nothing while its company is paused; its batch is told anew, and no pause counts as its failure', async () => {
  const company = await control.addCompany({ name: 'Acme', plan: 'starter', contacts: 1, conversations: 0 });
  const browser = session();
  const id = await install(browser, company);
  for (let pauses = 0; pauses < PAUSES; pauses++) {
    await called.promise;
    await app.control.pause(id);
    called = Promise.withResolvers();
    goesOn.resolve();
    const { resources } = await waitForStatus(
      browser,
      id,
      ({ resources }) => resources.contacts?.state === 'waiting',
    );
    expect(resources.contacts?.error).toBeNull();
    expect(await tagsAsked()).toBe(0);
    goesOn = Promise.withResolvers();
    await app.control.resume(id);
  }
  await called.promise;
  goesOn.resolve();
  const { resources } = await waitForStatus(browser, id, isSynced);
  expect(resources.contacts?.set_aside.parked).toBe(0);
  expect([await tagsAsked(), taken]).toEqual([1, 1]);
});
