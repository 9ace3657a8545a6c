import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { query } from './support/database.ts';
import { syncAgain } from './support/lists.ts';
import { createWorld, instanceOf } from './support/world.ts';

describe('8. Installing a company again updates its instance and wakes it up; where `/me` answers 404 or 403, each install is an instance of its own.', async () => {
  const world = await createWorld();
  await world.startAll();

  async function endGrant(companyId: string): Promise<void> {
    // A token that is due is asked for at once; after a 401 of a new one that takes half a minute.
    await world.control.clock({ advance_ms: 61 * 60_000 });
    const match = { path: '/oauth/token', company_id: companyId };
    await world.control.fault({ match, fault: { status: 400, body: { error: 'invalid_grant' } }, times: 1 });
  }

  it.each([
    ['paused', async (...[browser, id]) => void (await world.press(browser, id, 'pause'))],
    [
      'needs_reauthorization',
      async (browser, id, companyId) => {
        await endGrant(companyId);
        await world.press(browser, id, 'sync');
      },
    ],
    ['disconnected', async (...[browser, id]) => void (await world.press(browser, id, 'disconnect'))],
  ] as [
    string,
    (browser: ReturnType<typeof world.browser>, id: string, companyId: string) => Promise<void>,
  ][])('wakes an instance up that is %s', async (status, make) => {
    const company = await world.control.addCompany({ name: `Was ${status}` });
    const [first, second] = [world.browser(), world.browser()];
    const id = await world.install(first, company);
    await world.waitForSync(first, id);
    await make(first, id, company.id);
    const before = await world.waitForStatus(first, id, (now) => now.status === status);
    const mark = await world.control.mark();
    expect(await world.install(second, company)).toBe(id);
    const after = await world.waitForStatus(second, id, ({ resources: { contacts } }) => {
      const last = before.resources.contacts.finished_at;
      return contacts.state === 'idle' && contacts.finished_at !== null && contacts.finished_at !== last;
    });
    expect(after).toMatchObject({ status: 'active', company_id: company.id });
    expect((await world.control.tokenRequests(mark)).length).toBe(1);
    const lists = (await world.control.requests(mark)).filter(({ path }) => path === '/contacts');
    expect(lists.map(({ company_id, status: answered }) => [company_id, answered])).toContainEqual([
      company.id,
      200,
    ]);
  });

  it('starts no sync of an active one: another device signs in', async () => {
    const { company, browser, id } = await world.synced({ name: 'Two devices' });
    const before = (await world.status(browser, id)).resources;
    const mark = await world.control.mark();
    expect(await world.install(world.browser(), company)).toBe(id);
    const after = (await world.status(browser, id)).resources;
    expect(after.contacts.started_at).toBe(before.contacts.started_at);
    const requests = (await world.control.requests(mark)).filter(
      ({ company_id }) => company_id === company.id,
    );
    expect(requests.filter(({ path }) => path === '/contacts')).toEqual([]);

    // It retries what fails, as an administrator who authorizes again wants.
    const match = { path: '/contacts', company_id: company.id };
    await world.control.fault({ match, fault: { status: 403 }, times: 1 });
    await world.press(browser, id, 'sync');
    await world.waitForStatus(browser, id, ({ resources }) => resources.contacts.state === 'failed');
    await world.install(world.browser(), company);
    await world.waitForSync(browser, id);
  });

  it('takes over the new name of a company', async () => {
    const { company, browser, id } = await world.installed({ name: 'Old name' });
    await world.control.fault({
      match: { path: '/me', company_id: company.id },
      fault: { status: 200, body: { _links: { self: '' }, id: company.id, name: 'New name' } },
    });
    expect(await world.install(browser, company)).toBe(id);
    expect((await world.status(browser, id)).name).toBe('New name');
    expect((await browser.get('/')).text()).toContain('New name');
  });

  it.each([404, 403])('makes an instance of each install where the identity answers %d', async (refused) => {
    const company = await world.control.addCompany({ name: `Nameless ${refused}` });
    const match = { path: '/me', company_id: company.id };
    await world.control.fault({ match, fault: { status: refused, body: {} }, times: 100 });
    const browser = world.browser();
    const ids = [await world.install(browser, company), await world.install(browser, company)];
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) {
      const status = await world.waitForSync(browser, id);
      expect(status).toMatchObject({ id, company_id: null, status: 'active' });
      expect(status.name).not.toBe('');
      expect((await world.download(browser, id, 'contacts')).length).toBe(5);
    }
  });

  it('asks for the name of a company once a day', async () => {
    const { company, browser, id } = await world.synced({ name: 'Old name' });
    const mark = await world.control.mark();
    await syncAgain(world, browser, id);
    expect((await world.control.requests(mark)).filter(({ path }) => path === '/me')).toEqual([]);
    await query(world.databaseUrl, 'update instances set named_at = 0');
    await world.control.fault({
      match: { path: '/me', company_id: company.id },
      fault: { status: 200, body: { _links: { self: '' }, id: company.id, name: 'New name' } },
    });
    await syncAgain(world, browser, id);
    expect((await world.status(browser, id)).name).toBe('New name');
    const asked = (await world.control.requests(mark)).filter(({ path }) => path === '/me');
    expect(asked.map(({ company_id }) => company_id)).toEqual([company.id]);
  });

  it('tells of an identity that is trouble, and keeps the instance', async () => {
    const company = await world.control.addCompany({ name: 'Trouble' });
    const [browser, other] = [world.browser(), world.browser()];
    const id = await world.install(browser, company);
    await world.control.fault({
      match: { path: '/me', company_id: company.id },
      fault: { status: 200, headers: { 'content-type': 'text/html' }, body: '<h1>Back in an hour</h1>' },
      times: 100,
    });
    const page = await world.consent(other, await other.get('/install'), company);
    expect([page.status, page.url.pathname]).toEqual([502, '/oauth/callback']);
    expect((await other.get('/')).body).not.toContain('/instances/');
    await waitFor(async () => (await world.status(browser, id)).status === 'active', 'active');
  });
});

it('five administrators get in while other requests use up the limit, on a page that says that they wait', async () => {
  const world = await createWorld();
  await world.startAll();
  const { company, id } = await world.synced({ name: 'Busy' });
  const others = Array.from({ length: 5 }, () => world.browser());
  const callbacks = await Promise.all(others.map((one) => world.authorize(one, company)));
  // Longer than an install waits without a word.
  const fault = { status: 429, headers: { 'retry-after': '6' } };
  await world.control.fault({ match: { path: '/me', company_id: company.id }, fault, times: 3 });
  const pages = await Promise.all(
    others.map(async (one, at) => {
      const waits: string[] = [];
      for (let page = await one.get(callbacks[at] ?? ''); ; page = await one.get(page.url)) {
        if (page.status === 200) return { id: instanceOf(page), waits };
        expect([page.status, page.headers.get('refresh')]).toEqual([202, '1']);
        waits.push(page.text());
      }
    }),
  );
  expect(pages.map((page) => page.id)).toEqual(Array(5).fill(id));
  const waits = pages.flatMap((page) => page.waits);
  expect(waits).toHaveLength(3);
  expect(waits[0]).toContain('Signing you in…');
});
