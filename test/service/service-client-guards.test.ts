import { expect, test } from 'vitest';
import { GUARDS } from '../../src/contract/guards.ts';
import { failureOf } from './failure-of.ts';
import { startTestClient, type TestCompany } from './test-client.ts';

const WINDOW_MS = 600;
const guards = {
  analytics: { ...GUARDS.analytics, windowMs: WINDOW_MS },
  resource: { ...GUARDS.resource, limit: 3, windowMs: WINDOW_MS },
  'dynamic-object': { ...GUARDS['dynamic-object'], limit: 4, windowMs: WINDOW_MS },
};
const known = await startTestClient({ sandbox: { guards }, guards });
/** The contract's guards. */
const usual = await startTestClient();
const stricter = await startTestClient({
  sandbox: { guards: { 'dynamic-object': { ...guards['dynamic-object'], limit: 1, windowMs: 200 } } },
  guards: { 'dynamic-object': { ...guards['dynamic-object'], limit: 2, windowMs: 200 } },
});

/** Makes calls at the same time, from two processes in turn. */
function atOnce<T>(count: number, { client, sibling }: TestCompany, call: (by: typeof client) => Promise<T>) {
  return Promise.all(Array.from({ length: count }, (_, index) => call(index % 2 ? client : sibling)));
}

/** Tier and status of a company's requests, in order. */
async function verdicts({ journal }: TestCompany): Promise<string[]> {
  return (await journal()).map(({ tier, status }) => `${tier} ${status}`);
}

test.concurrent('all processes together wait for a bucket, and its guard never refuses', async () => {
  const company = await known.newCompany();
  const startedAt = performance.now();
  const links = await atOnce(9, company, (by) => by.createLink({ external_url: 'https://shop.example/1' }));
  // Four at once, and two windows for the other five.
  expect(performance.now() - startedAt).toBeGreaterThan(2 * WINDOW_MS);
  expect(new Set(links.map(({ id }) => id)).size).toBe(9);
  expect(await verdicts(company)).toEqual(Array(9).fill('dynamic-object 201'));
});

test.concurrent('routes that share a guard share its bucket', async () => {
  const company = await known.newCompany();
  const startedAt = performance.now();
  await Promise.all([company.client.createReport({}), company.client.createExport({})]);
  expect(performance.now() - startedAt).toBeGreaterThan(WINDOW_MS);
  expect(await verdicts(company)).toEqual(['1 201', '1 201']);
});

test.concurrent('requests in different buckets do not wait for each other', async () => {
  const company = await known.newCompany();
  const accounts = [];
  for (const name of ['One', 'Two']) accounts.push(await company.client.createAccount({ name }));
  const update = (by: typeof company.client, { id }: { id: string }) =>
    by.updateAccount({ account_id: id }, { description: 'new' }, { maxWaitMs: 0 });
  for (const account of accounts) await atOnce(3, company, (by) => update(by, account));
  expect((await verdicts(company)).slice(2)).toEqual(Array(6).fill('2 200'));
});

test('the search guard is a share of the limit that the service names', async () => {
  const company = await usual.newCompany({ conversations: 1 });
  const search = (by: typeof company.client) =>
    by.searchConversations({ query: 'order' }, { limit: 1, maxWaitMs: 10_000 });
  // 40% of 120 at once; the next one a window later.
  await atOnce(48, company, search);
  expect((await failureOf(search(company.client))).message).toContain('A rate guard allows no request');
  expect(await verdicts(company)).toEqual(Array(48).fill('search 200'));
});

test('a call that would wait for too long fails at once, and says what for', async () => {
  const { client, journal } = await usual.newCompany();
  await client.createReport({});
  const error = await failureOf(client.createReport({}, { maxWaitMs: 10 }));
  expect(error).toMatchObject({ kind: 'rate_limited', remedy: 'wait', status: undefined });
  expect(error.retryAfterMs).toBeGreaterThan(10);
  expect(error.message).toContain('POST /analytics/reports');
  expect((await journal()).length).toBe(1);
});

test('a guard that is stricter than the contract refuses a few times, and every call succeeds', async () => {
  const company = await stricter.newCompany();
  await atOnce(4, company, (by) => by.createLink({ name: 'Order' }));
  const all = await verdicts(company);
  expect(all.filter((verdict) => verdict.endsWith('201')).length).toBe(4);
  expect(all.length).toBeGreaterThan(4);
  expect(all.length).toBeLessThanOrEqual(8);
});

test('a guard that refuses blocks its own route alone', async () => {
  const { client, fault, journal } = await usual.newCompany();
  const headers = { 'retry-after': '30', 'x-service-tier': 'dynamic-object' };
  await fault({ status: 429, headers }, 1, { path: '/links' });
  const options = { maxWaitMs: 10_000 };
  for (let call = 0; call < 2; call++) {
    const { retryAfterMs } = await failureOf(client.createLink({ name: 'Order' }, options));
    expect(retryAfterMs).toBeGreaterThan(options.maxWaitMs);
  }
  await client.listTags(options);
  await client.createReport({}, options);
  const rows = (await journal()).map(({ path, status }) => `${path} ${status}`);
  expect(rows).toEqual(['/links 429', '/tags 200', '/analytics/reports 201']);
});
