import { Redis } from 'ioredis';
import { afterAll, beforeEach, expect, test } from 'vitest';
import type { OwnLogic, RecordBatch } from '../../src/sync/own-logic.ts';
import type { FaultOrder, SandboxCompany } from '../acceptance/support/sandbox-control.ts';
import { readBudgetState } from '../support/budget-state.ts';
import { downloadIds, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

/** Four pages of contacts. */
const CONTACTS = 350;
const PAGE = 100;

const nothing: OwnLogic = async () => {};
let ownLogic: OwnLogic = nothing;
const { app, control, session, redisUrl } = await startTestApp({
  ownLogic: (batch, context) => ownLogic(batch, context),
});
const redis = new Redis(redisUrl);
afterAll(() => redis.disconnect());
beforeEach(() => {
  ownLogic = nothing;
});

const newCompany = () =>
  control.addCompany({ name: 'Ahead', plan: 'starter', contacts: CONTACTS, conversations: 0 });

/** The requests for pages of contacts, in the order in which they came to the service. */
async function asked(company: SandboxCompany) {
  const all = await control.requests();
  return all.filter(({ path, company_id }) => path === '/contacts' && company_id === company.id);
}

async function permitsOf({ id }: SandboxCompany): Promise<number> {
  return Object.keys((await readBudgetState(redis, id)).flight).length;
}

/** Resolves when the company holds no permit: nothing of it is under way, and nothing was lost. */
function noneInFlight(company: SandboxCompany) {
  return waitFor(async () => (await permitsOf(company)) === 0, {
    what: 'every permit to be given back',
  });
}

/** Own logic that stops at a page (the first is 1) until it is let go. */
function holdAt(page: number) {
  const held = Promise.withResolvers<RecordBatch>();
  const free = Promise.withResolvers<void>();
  let pages = 0;
  ownLogic = async (batch) => {
    if (batch.resource !== 'contacts') return;
    pages++;
    if (pages !== page) return;
    held.resolve(batch);
    await free.promise;
  };
  return { held: held.promise, letGo: free.resolve };
}

async function expectWholeCopy(browser: ReturnType<typeof session>, id: string) {
  await waitForStatus(browser, id, isSynced);
  const ids = await downloadIds(browser, id, 'contacts');
  expect(ids.length).toBe(CONTACTS);
  expect(new Set(ids).size).toBe(CONTACTS);
}

test('while a page is being written the next one is fetched, and no further one', async () => {
  const company = await newCompany();
  const { held, letGo } = holdAt(2);
  const browser = session();
  const id = await install(browser, company);
  expect((await held).created.length).toBe(PAGE);

  await waitFor(async () => (await asked(company)).length === 3);
  await noneInFlight(company);
  expect((await asked(company)).length).toBe(3);
  const { resources } = await readStatus(browser, id);
  expect(resources.contacts).toMatchObject({ pages: 1, records: PAGE });
  expect((await downloadIds(browser, id, 'contacts')).length).toBe(PAGE);

  letGo();
  await expectWholeCopy(browser, id);
  expect((await asked(company)).length).toBe(4);
});

test('behind the last page no permit stays behind', async () => {
  const company = await newCompany();
  const browser = session();
  await expectWholeCopy(browser, await install(browser, company));
  await noneInFlight(company);
  expect((await asked(company)).length).toBe(4);
});

test('a run that is paused while the next page is on its way writes neither, and keeps no permit', async () => {
  const company = await newCompany();
  const match = { path: '/contacts', company_id: company.id, nth: 2 };
  await control.fault({ match, fault: { delay_ms: 15_000 } });
  const { held, letGo } = holdAt(1);
  const browser = session();
  const id = await install(browser, company);
  await held;
  await waitFor(async () => (await permitsOf(company)) === 1);
  const dashboard = await browser.get(`/instances/${id}`);
  await browser.submit(dashboard.form(`/instances/${id}/pause`));
  letGo();
  await noneInFlight(company);
  expect((await readStatus(browser, id)).resources.contacts).toMatchObject({ state: 'waiting', pages: 0 });
  expect(await downloadIds(browser, id, 'contacts')).toEqual([]);

  await app.control.resume(id);
  await expectWholeCopy(browser, id);
});

test.each<[string, FaultOrder['fault']]>([
  ['a rejected token', { status: 401 }],
  ['the limit', { status: 429, headers: { 'retry-after': '0.2' } }],
  ['a guard', { status: 429, headers: { 'retry-after': '0.2', 'x-service-tier': '2' } }],
  ['a connection that breaks', { drop: 'before' }],
  ['a page that is none', { status: 200, body: {} }],
])('%s on the way to the next page leaves the page before as it is', async (_what, fault) => {
  const company = await newCompany();
  const match = { path: '/contacts', company_id: company.id, nth: 2 };
  await control.fault({ match, fault });
  const batches: number[] = [];
  ownLogic = async ({ resource, created, changed }) => {
    if (resource === 'contacts') batches.push(created.length + changed.length);
  };
  const browser = session();
  const id = await install(browser, company);
  await expectWholeCopy(browser, id);
  expect(batches).toEqual([PAGE, PAGE, PAGE, CONTACTS - 3 * PAGE]);
  expect((await asked(company)).length).toBe(5);
  await noneInFlight(company);
});

test('own logic that fails again and again wastes one request in all', async () => {
  const company = await newCompany();
  let tries = 0;
  ownLogic = async () => {
    tries++;
    if (tries > 3) return;
    // What was asked for ahead has come to the service by then.
    if (tries === 1) await waitFor(async () => (await asked(company)).length === 2);
    await noneInFlight(company);
    throw new Error('the warehouse is closed');
  };
  const browser = session();
  const id = await install(browser, company);
  await expectWholeCopy(browser, id);
  // The four pages, three tries more of the first one, and what was asked for ahead of the first try.
  expect((await asked(company)).length).toBe(4 + 3 + 1);
  await noneInFlight(company);
});
