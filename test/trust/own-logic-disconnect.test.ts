import { expect, test } from 'vitest';
import { install } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

const called = Promise.withResolvers<void>();
const installedAgain = Promise.withResolvers<void>();
const calledAgain = Promise.withResolvers<string>();
let batches = 0;

/** Own logic that is at its first batch, with a call before and one after all that happens meanwhile. */
const testApp = await startTestApp({
  ownLogic: async (_batch, { service }) => {
    if (batches++ > 0) return;
    await service.listTags();
    called.resolve();
    await installedAgain.promise;
    const sent = service.listTags().then(() => 'sent');
    calledAgain.resolve(await sent.catch((error: Error) => error.message));
  },
});

test('own logic that was at work over a disconnect sends nothing under the grant of the next install', async () => {
  const company = await testApp.control.addCompany({ name: 'Acme', plan: 'starter', contacts: 3 });
  const browser = testApp.session();
  const id = await install(browser, company);
  await called.promise;
  const dashboard = await browser.get(`/instances/${id}`);
  await browser.submit(dashboard.form(`/instances/${id}/disconnect`));
  expect(await install(browser, company)).toBe(id);
  installedAgain.resolve();
  expect(await calledAgain.promise).toContain('what it was to be sent for is over');
  expect((await testApp.control.requests()).filter(({ path }) => path === '/tags').length).toBe(1);
});
