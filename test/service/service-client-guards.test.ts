import { expect, test } from 'vitest';
import { GUARDS } from '../../src/contract/guards.ts';
import type { JournalRow } from '../../src/sandbox/types.ts';
import { failureOf, startTestClient, type TestCompany } from './test-client.ts';

const WINDOW_MS = 600;
const RESOURCE_WINDOW_MS = 1_500;
const guards = {
  analytics: { ...GUARDS.analytics, windowMs: WINDOW_MS },
  resource: { ...GUARDS.resource, limit: 3, windowMs: RESOURCE_WINDOW_MS },
  'dynamic-object': { ...GUARDS['dynamic-object'], limit: 4, windowMs: WINDOW_MS },
};
const known = await startTestClient({ sandbox: { guards }, guards });
/** Nothing but what the service says, with windows of a minute. */
const usual = await startTestClient();
const stricter = await startTestClient({
  sandbox: { guards: { 'dynamic-object': { ...guards['dynamic-object'], limit: 1, windowMs: 200 } } },
  guards: { 'dynamic-object': { ...guards['dynamic-object'], limit: 2, windowMs: 200 } },
});

/** Makes calls at the same time, from two processes in turn. */
function atOnce<T>(count: number, { client, sibling }: TestCompany, call: (by: typeof client) => Promise<T>) {
  return Promise.all(Array.from({ length: count }, (_, index) => call(index % 2 ? client : sibling)));
}

function refused(journal: readonly JournalRow[]): JournalRow[] {
  return journal.filter(({ status }) => status === 429);
}

test('a bucket is waited for, by all processes together, and no guard ever refuses', async () => {
  const company = await known.newCompany();
  const startedAt = performance.now();
  const links = await atOnce(11, company, (by) => by.createLink({ external_url: 'https://shop.example/1' }));
  // Four at once, and two windows for the other seven.
  expect(performance.now() - startedAt).toBeGreaterThan(2 * WINDOW_MS);
  expect(new Set(links.map(({ id }) => id)).size).toBe(11);
  const journal = await company.journal();
  expect(journal.map(({ tier, status }) => `${tier} ${status}`)).toEqual(
    Array(11).fill('dynamic-object 201'),
  );
});

test('routes that share a guard share its bucket', async () => {
  const company = await known.newCompany();
  await company.client.createReport({});
  const report = company.client.createReport({});
  const startedAt = performance.now();
  await company.client.createExport({});
  await report;
  expect(performance.now() - startedAt).toBeGreaterThan(2 * WINDOW_MS - 50);
  expect(refused(await company.journal())).toEqual([]);
});

test('what counts apart does not wait for each other', async () => {
  const company = await known.newCompany();
  const accounts = [];
  for (const name of ['One', 'Two']) accounts.push(await company.client.createAccount({ name }));
  const startedAt = performance.now();
  await Promise.all(
    accounts.map(({ id }) =>
      atOnce(3, company, (by) => by.updateAccount({ account_id: id }, { description: 'new' })),
    ),
  );
  expect(performance.now() - startedAt).toBeLessThan(RESOURCE_WINDOW_MS);
  const [first = { id: '' }] = accounts;
  await company.client.updateAccount({ account_id: first.id }, { description: 'newer' });
  expect(performance.now() - startedAt).toBeGreaterThan(RESOURCE_WINDOW_MS);
  expect(refused(await company.journal())).toEqual([]);
});

test('the search guard is a share of the rate limit that the service says', async () => {
  const company = await usual.newCompany({ conversations: 1 });
  const search = (by: typeof company.client) =>
    by.searchConversations({ query: 'order' }, { limit: 1, maxWaitMs: 10_000 });
  // 40% of 120 at once; the next one a window later.
  await atOnce(48, company, search);
  expect(await failureOf(search(company.client))).toMatchObject({ remedy: 'wait', tier: 'search' });
  const journal = await company.journal();
  expect(journal.map(({ tier, status }) => `${tier} ${status}`)).toEqual(Array(48).fill('search 200'));
});

test('a call that would wait for too long fails at once, and says what for', async () => {
  const { client, journal } = await known.newCompany();
  await client.createReport({});
  const error = await failureOf(client.createReport({}, { maxWaitMs: WINDOW_MS / 2 }));
  expect(error).toMatchObject({ remedy: 'wait', status: undefined, tier: '1' });
  expect(error.retryAfterMs).toBeGreaterThan(WINDOW_MS / 2);
  expect(error.message).toContain('POST /analytics/reports');
  expect((await journal()).length).toBe(1);
});

test('a guard that is other than we think teaches by its refusals, and every call succeeds', async () => {
  const company = await stricter.newCompany();
  const links = await atOnce(4, company, (by) => by.createLink({ name: 'Order' }));
  expect(links.length).toBe(4);
  const journal = await company.journal();
  expect(journal.filter(({ status }) => status === 201).length).toBe(4);
  expect(refused(journal).length).toBeGreaterThan(0);
  expect(refused(journal).length).toBeLessThanOrEqual(4);
});

test('a guard that refuses is left alone for as long as it says, and no other route waits for it', async () => {
  const { client, fault, journal } = await usual.newCompany();
  const headers = { 'retry-after': '30', 'x-service-tier': 'dynamic-object' };
  await fault({ status: 429, headers }, 1, { path: '/links' });
  const options = { maxWaitMs: 10_000 };
  for (let call = 0; call < 2; call++) {
    const error = await failureOf(client.createLink({ name: 'Order' }, options));
    expect(error).toMatchObject({ remedy: 'wait' });
    expect(error.retryAfterMs).toBeGreaterThan(options.maxWaitMs);
  }
  await client.listTags(options);
  await client.createReport({}, options);
  expect((await journal()).map(({ path, status }) => `${path} ${status}`)).toEqual([
    '/links 429',
    '/tags 200',
    '/analytics/reports 201',
  ]);
});
