import { expect, test } from 'vitest';
import { consent, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

const testApp = await startTestApp();
const { control, session } = testApp;
const company = await control.addCompany({ name: 'Acme', plan: 'starter', contacts: 20, conversations: 20 });

async function tokenRequests() {
  return (await control.requests()).filter(({ path }) => path === '/oauth/token');
}

test('the callback answers 303 to a clean address, uncached, without referrer, in a new session', async () => {
  const browser = session();
  const consentPage = await browser.get('/install');
  const sessionId = () => browser.cookies.header(new URL(testApp.config.publicUrl));
  const before = sessionId();
  const back = await consent(browser, consentPage, company, { follow: false });
  const answer = await browser.get(back.location ?? '', { follow: false });

  expect(answer.status).toBe(303);
  expect(answer.location?.pathname).toMatch(/^\/instances\/ins_[0-9a-f]{32}$/);
  expect(answer.location?.search).toBe('');
  expect(answer.headers.get('cache-control')).toContain('no-store');
  expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
  expect(sessionId()).not.toBe(before);
});

test('a state that is missing, unknown, spent or from another browser asks the service for nothing', async () => {
  const browser = session();
  const back = await consent(browser, await browser.get('/install'), company, { follow: false });
  const callback = back.location ?? new URL('about:blank');
  const otherBrowser = session();
  await otherBrowser.get('/install', { follow: false });
  const before = (await tokenRequests()).length;

  const stateless = new URL(callback);
  stateless.searchParams.delete('state');
  const unknown = new URL(callback);
  unknown.searchParams.set('state', 'x'.repeat(43));
  for (const [who, address] of [
    [browser, stateless],
    [browser, unknown],
    [otherBrowser, callback],
    [session(), callback],
  ] as const) {
    const page = await who.get(address);
    expect(page.status).toBe(400);
    expect(page.body).toMatch(/href="[^"]*\/install"/);
  }
  expect((await tokenRequests()).length).toBe(before);

  expect((await browser.get(callback, { follow: false })).status).toBe(303);
  const replay = await browser.get(callback, { follow: false });
  expect((await tokenRequests()).length).toBe(before + 1);
  expect(replay.status).toBeLessThan(500);
});

test('two tabs that install at once both work', async () => {
  const browser = session();
  const [first, second] = [await browser.get('/install'), await browser.get('/install')];
  const pages = [await consent(browser, second, company), await consent(browser, first, company)];
  expect(pages.map(({ status }) => status)).toEqual([200, 200]);
  expect(pages[0]?.url.href).toBe(pages[1]?.url.href);
});

test('a declined consent stores nothing, and says so', async () => {
  const browser = session();
  const page = await consent(browser, await browser.get('/install'), company, { decision: 'deny' });
  expect(page.status).toBe(403);
  expect(page.body).toMatch(/declined/i);
  expect(page.url.pathname).toBe('/oauth/callback');
});

test('who is no administrator is told that one is needed', async () => {
  const browser = session();
  const teammateId = company.teammates.find(({ is_admin }) => !is_admin)?.id ?? '';
  const page = await consent(browser, await browser.get('/install'), company, { teammateId });
  expect(page.status).toBe(403);
  expect(page.body).toMatch(/administrator/i);
});

test('a code that has expired leads to a page that offers to start again', async () => {
  const browser = session();
  const back = await consent(browser, await browser.get('/install'), company, { follow: false });
  await control.clock({ advance_ms: 60 * 60_000 });
  const page = await browser.get(back.location ?? '');
  expect(page.status).toBe(400);
  expect(page.body).toMatch(/expired/i);
  expect(page.body).toMatch(/href="[^"]*\/install"/);
});

test.each([
  ['is down', { status: 503, body: { _error: { status: 503, title: 'x', message: 'y' } } }],
  ['answers with HTML', { status: 200, body: '<h1>hello</h1>', headers: { 'content-type': 'text/html' } }],
  ['answers without a token', { status: 200, body: { token_type: 'Bearer' } }],
  ['redirects', { status: 307, headers: { location: 'http://127.0.0.1:9/stolen' } }],
  ['breaks the connection', { drop: 'before' as const }],
])('a token route that %s leaves nothing behind', async (_what, fault) => {
  const fresh = await control.addCompany({ name: 'Fresh', plan: 'starter', contacts: 1, conversations: 1 });
  const browser = session();
  const consentPage = await browser.get('/install');
  await control.fault({ match: { path: '/oauth/token' }, fault, times: 1 });
  const page = await consent(browser, consentPage, fresh);
  await control.clearFaults();

  expect(page.status).toBeGreaterThanOrEqual(400);
  expect(page.body).not.toMatch(/\bat .*\.[tj]s:\d+/);
  expect(page.body).toMatch(/href="[^"]*\/install"/);
  expect((await browser.get('/')).body).not.toContain('/instances/ins_');
  await install(browser, fresh);
});

test('installing the same company again is the same instance, synced again', async () => {
  const [one, two] = [session(), session()];
  const id = await install(one, company);
  const first = await waitForStatus(one, id, isSynced);
  expect(await install(two, company)).toBe(id);
  const second = await waitForStatus(
    two,
    id,
    (status) =>
      isSynced(status) && status.resources.contacts?.started_at !== first.resources.contacts?.started_at,
  );
  expect(second.resources.contacts).toMatchObject({ records: 20, stored: 20, deleted: 0 });
});

test.each([403, 404])(
  'a service whose identity route answers %i works too: each install is an instance of its own',
  async (status) => {
    await control.fault({ match: { path: '/me' }, fault: { status }, times: 2 });
    const browser = session();
    const [one, two] = [await install(browser, company), await install(browser, company)];
    expect(one).not.toBe(two);
    const synced = await waitForStatus(browser, one, isSynced);
    expect(synced).toMatchObject({ company_id: null, status: 'active' });
    expect((await readStatus(browser, two)).name).toMatch(/^Company installed on \d{4}-\d\d-\d\d$/);
  },
);

test('another session does not see the instance', async () => {
  const id = await install(session(), company);
  const stranger = session();
  for (const path of ['', '/status', '/contacts', '/contacts.ndjson', '/live']) {
    expect((await stranger.get(`/instances/${id}${path}`)).status).toBe(404);
  }
});
