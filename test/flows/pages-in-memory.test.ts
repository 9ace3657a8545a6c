import { expect, test } from 'vitest';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

const COMPANY = { name: 'Held up', plan: 'enterprise', contacts: 350, conversations: 350 } as const;

/** A page of 100 records is larger, in bytes. */
const LESS_THAN_A_PAGE = 40_000;

const goOn = Promise.withResolvers<void>();
const { control, session } = await startTestApp({
  ownLogic: async () => {
    await goOn.promise;
  },
});
const browser = session();

async function inMemory(): Promise<number> {
  const { body } = await browser.get('/metrics');
  return Number(/^service_answer_bytes (\d+)$/m.exec(body)?.[1]);
}

test('pages are counted as in memory while own logic holds them up, and not when they are written, whatever came between', async () => {
  const companies = [];
  for (let count = 0; count < 3; count++) companies.push(await control.addCompany(COMPANY));
  const ids = [];
  for (const company of companies) ids.push(await install(browser, company));
  // Of two lists each, the page that is told and the one behind it.
  await expect.poll(inMemory).toBeGreaterThan(12 * LESS_THAN_A_PAGE);
  const [first, ...others] = ids;
  const dashboard = await browser.get(`/instances/${first}`);
  await browser.submit(dashboard.form(`/instances/${first}/pause`));
  await control.fault({ match: { path: '/contacts' }, fault: { status: 500 }, times: 2 });
  goOn.resolve();
  for (const id of others) await waitForStatus(browser, id, isSynced);
  await expect.poll(inMemory).toBe(0);
});
