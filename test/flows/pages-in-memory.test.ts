import { expect, test } from 'vitest';
import type { OwnLogic } from '../../src/sync/own-logic.ts';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

const COMPANY = { name: 'Held up', plan: 'enterprise', contacts: 350, conversations: 350 } as const;

/** A page of 100 records is larger, in bytes. */
const LESS_THAN_A_PAGE = 40_000;

const goOn = Promise.withResolvers<void>();
let ownLogic: OwnLogic = () => goOn.promise;
const { control, session } = await startTestApp({ ownLogic: (batch, context) => ownLogic(batch, context) });
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

test('a page that is written is not counted any more while its list goes on', async () => {
  const pages = 6;
  const leaveFirst = Promise.withResolvers<void>();
  const atLast = Promise.withResolvers<void>();
  const leaveLast = Promise.withResolvers<void>();
  let told = 0;
  ownLogic = async () => {
    told++;
    if (told === 1) await leaveFirst.promise;
    if (told < pages) return;
    atLast.resolve();
    await leaveLast.promise;
  };
  const company = await control.addCompany({ ...COMPANY, contacts: pages * 100, conversations: 0 });
  const id = await install(browser, company);
  // The page that is told and the one behind it; behind the last one there is none.
  await expect.poll(inMemory).toBeGreaterThan(2 * LESS_THAN_A_PAGE);
  const two = await inMemory();
  leaveFirst.resolve();
  await atLast.promise;
  expect(await inMemory()).toBeLessThan(two);
  leaveLast.resolve();
  await waitForStatus(browser, id, isSynced);
});
