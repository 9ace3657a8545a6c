import { afterAll, expect, test } from 'vitest';
import type { OwnLogic } from '../../src/sync/own-logic.ts';
import { type Company, TestSandbox } from '../sandbox/test-sandbox.ts';
import { install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';
import { onRecords } from './own-logic-example.ts';

const CONVERSATIONS = 45;
const REFUNDS = 30;
const TAGS_ROUTE = '/conversations/:conversation_id/tags';

let ownLogic: OwnLogic = onRecords;
const testApp = await startTestApp({
  workers: false,
  // One less than the sandbox enforces, to see that what the app is told counts.
  env: { GUARD_RESOURCE: '4/1' },
  ownLogic: (batch, context) => ownLogic(batch, context),
});
const { app, control, session } = testApp;
const sandbox = new TestSandbox(testApp.sandbox);
let workers = app.startWorkers();
afterAll(() => workers.close());

interface Conversation {
  id: string;
  subject: string;
  tags: { id: string; name: string }[];
}

/** A company some of whose conversations are about refunds; the way of asking it is its own token. */
async function newCompany(refunds: number) {
  const company = await sandbox.company({ plan: 'enterprise', contacts: 3, conversations: CONVERSATIONS });
  const token = company.api_tokens[0]?.token ?? '';
  const conversations = async () => {
    const { body } = await sandbox.call<{ _results: Conversation[] }>(
      'GET',
      '/conversations?limit=100',
      token,
    );
    return body._results;
  };
  const change = async (id: string, changes: object) => {
    const { status } = await sandbox.call('PATCH', `/conversations/${id}`, token, changes);
    expect(status).toBe(200);
  };
  for (const [index, { id }] of (await conversations()).entries()) {
    await change(id, { tag_ids: [], subject: index < refunds ? `Refund for order ${index}` : 'Hello' });
  }
  return { company, conversations, change };
}

/** What the app asked for on behalf of a company. */
async function asked({ id }: Company) {
  return (await control.requests()).filter((row) => row.company_id === id && row.application !== null);
}

test('conversations about refunds are tagged in the service, many at once, and no limit refuses any', async () => {
  const { company, conversations, change } = await newCompany(REFUNDS);
  const browser = session();
  const id = await install(browser, company);
  const first = await waitForStatus(browser, id, isSynced);
  const tagged = (all: Conversation[]) =>
    all.filter(({ tags }) => tags.some(({ name }) => name === 'Refund')).map(({ subject }) => subject);
  const subjects = tagged(await conversations());
  expect(subjects.length).toBe(REFUNDS);
  expect(subjects.filter((subject) => !subject.startsWith('Refund'))).toEqual([]);

  // What the own logic changed comes back as changed, not as new: it does not meet itself.
  const [untagged] = (await conversations()).filter(({ tags }) => tags.length === 0);
  await change(untagged?.id ?? '', { subject: 'Refund, please' });
  const dashboard = await browser.get(`/instances/${id}`);
  await browser.submit(dashboard.form(`/instances/${id}/sync`), {});
  await waitForStatus(
    browser,
    id,
    (status) =>
      isSynced(status) &&
      status.resources.conversations?.finished_at !== first.resources.conversations?.finished_at,
  );
  expect(tagged(await conversations()).length).toBe(REFUNDS);

  const requests = await asked(company);
  expect(requests.filter(({ status }) => status === 429)).toEqual([]);
  expect(requests.filter(({ method, tier }) => method === 'POST' && tier === '2').length).toBe(REFUNDS);
});

test('more calls for one conversation than its guard is said to allow wait for it', async () => {
  const { company } = await newCompany(0);
  const [tag_id = ''] = company.tags;
  ownLogic = async ({ resource, created }, { service }) => {
    const [first] = created;
    if (resource !== 'conversations' || first === undefined) return;
    const conversation_id = String(first.id);
    const calls = Array.from({ length: 7 }, (_, index) => {
      const call = index % 2 ? service.removeConversationTags : service.addConversationTags;
      return call({ conversation_id }, { tag_ids: [tag_id] });
    });
    await Promise.all(calls);
  };
  const browser = session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  const guarded = (await asked(company)).filter(({ tier }) => tier === '2');
  expect(guarded.map(({ status }) => status)).toEqual(Array(7).fill(200));
  expect((guarded[4]?.at ?? 0) - (guarded[0]?.at ?? 0)).toBeGreaterThanOrEqual(1_000);
});

test('a call that the service refuses holds the page back and is shown; then the sync goes on', async () => {
  const { company, conversations } = await newCompany(2);
  ownLogic = onRecords;
  const match = { path: TAGS_ROUTE, company_id: company.id };
  await control.fault({ match, fault: { status: 404 }, times: 4 });
  const browser = session();
  const id = await install(browser, company);
  // Between two tries it is told as running.
  const held = await waitForStatus(
    browser,
    id,
    ({ resources }) => resources.conversations?.waiting_for === 'retry',
  );
  expect(held.resources.conversations).toMatchObject({ state: 'waiting', pages: 0 });
  expect(held.resources.conversations?.error).toMatch(/own logic failed on a batch of conversations.*404/);
  const status = await waitForStatus(browser, id, isSynced);
  expect(status.resources.conversations).toMatchObject({ records: CONVERSATIONS, error: null });
  expect((await conversations()).filter(({ tags }) => tags.length > 0).length).toBe(2);
});

test('a shutdown ends a call that waits, and the page is taken up again', async () => {
  const { company, conversations } = await newCompany(2);
  ownLogic = onRecords;
  const match = { path: TAGS_ROUTE, company_id: company.id };
  await control.fault({
    match,
    fault: { status: 429, headers: { 'retry-after': '3', 'x-service-tier': '2' } },
    times: 2,
  });
  const browser = session();
  const id = await install(browser, company);
  await waitFor(async () => (await asked(company)).filter(({ status }) => status === 429).length === 2);
  const startedAt = performance.now();
  await workers.close();
  expect(performance.now() - startedAt).toBeLessThan(2_500);
  expect((await readStatus(browser, id)).resources.conversations).toMatchObject({ pages: 0, error: null });
  workers = app.startWorkers();
  await waitForStatus(browser, id, isSynced);
  expect((await conversations()).filter(({ tags }) => tags.length > 0).length).toBe(2);
});
