import diagnostics from 'node:diagnostics_channel';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { Redis } from 'ioredis';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { MOST_PAGES } from '../../src/client/page-chain.ts';
import { HEADER } from '../../src/contract/headers.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { writeBudgetState } from '../support/budget-state.ts';
import { downloadIds, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';
import { goodHeaders, type HostileTurn, sendPage, startHostileService } from './hostile-service.ts';

const CONTACTS = 30;

const NOT_AGAIN = 'it could not be asked for again at once';

const hostile = await startHostileService();
const { config, control, redisUrl, sandbox, session } = await startTestApp({
  env: { SERVICE_API_URL: `${hostile.origin}/api` },
});
hostile.lead(sandbox.origin);
const db = await openDatabase(config.databaseUrl);
afterAll(() => db.destroy());

/** Takes any call, and counts them: nobody must call, be it to say hello. */
let calls = 0;
const trap = createServer((socket) => {
  calls++;
  socket.on('error', () => undefined).destroy();
});
await new Promise<void>((resolve) => trap.listen(0, resolve));
afterAll(() => trap.close());
const trapPort = (trap.address() as AddressInfo).port;

/** Whom anything in this process wanted to call over HTTP, also where no name leads to anybody. */
const called = new Set<string>();
diagnostics.subscribe('undici:client:beforeConnect', (message) => {
  const { protocol, host } = (message as { connectParams: { protocol: string; host: string } }).connectParams;
  called.add(`${protocol}//${host}`);
});

beforeEach(() => {
  calls = 0;
  called.clear();
});

async function newCompany() {
  const company = await control.addCompany({
    name: 'Hostile',
    plan: 'starter',
    contacts: CONTACTS,
    conversations: 0,
  });
  const browser = session();
  return {
    company,
    browser,
    /** Installs it with a service that answers so; waits until its contacts failed; answers why. */
    async failureWith(respond: (turn: HostileTurn) => void) {
      hostile.answer(company.id, respond);
      const id = await install(browser, company);
      const status = await waitForStatus(
        browser,
        id,
        ({ resources }) => resources.contacts?.state === 'failed',
      );
      return { id, error: status.resources.contacts?.error ?? '', status };
    },
    /** Lets the service be itself again; the administrator wants another sync. */
    async recover(id: string) {
      hostile.relent(company.id);
      const dashboard = await browser.get(`/instances/${id}`);
      await browser.submit(dashboard.form(`/instances/${id}/sync`));
      await waitForStatus(browser, id, isSynced);
      expect((await downloadIds(browser, id, 'contacts')).length).toBe(CONTACTS);
    },
  };
}

/** A page of ids that begin like this. */
function idsOf(page: string | number, count = 100): string[] {
  return Array.from({ length: count }, (_, place) => `crd_${page}_${place}`);
}

const { host, port } = new URL(hostile.origin);

test.each([
  ['another port', `http://127.0.0.1:${trapPort}/api/contacts`, 'SERVICE_NEXT_ORIGINS'],
  ['another host', `http://localhost:${trapPort}/api/contacts`, 'SERVICE_NEXT_ORIGINS'],
  ['another host at the same port', `http://localhost:${port}/api/contacts`, 'SERVICE_NEXT_ORIGINS'],
  ['a host that ends like it', `http://evil.${host}/api/contacts`, 'no address'],
  ['a host that begins like it', `http://${host}.evil.example/api/contacts`, 'no address'],
  ['a host below another', `http://127.0.0.1.localhost:${trapPort}/`, 'SERVICE_NEXT_ORIGINS'],
  ['another scheme', `https://${host}/api/contacts`, 'SERVICE_NEXT_ORIGINS'],
  ['the host as a user', `http://${host}@localhost:${trapPort}/api/contacts`, 'SERVICE_NEXT_ORIGINS'],
  ['the host with a user', `http://token@${host}/api/contacts`, 'a user in it'],
  ['dots', `${hostile.origin}/api/../steal`, 'by way of ..'],
  ['encoded dots', `${hostile.origin}/api/%2e%2E%2fsteal`, 'by way of ..'],
  ['dots with a tab between', `${hostile.origin}/api/.\t./steal`, 'no address'],
])('a next page at %s: nothing is sent there, and the dashboard says why', async (_what, next, reason) => {
  const { browser, company, failureWith, recover } = await newCompany();
  const { id, error } = await failureWith(({ response }) => sendPage(response, ['crd_1'], next));
  expect(error).toContain(reason);
  expect((await browser.get(`/instances/${id}`)).body).toContain('where the access token may not go');
  expect(hostile.asked(company.id).length).toBe(1);
  expect(calls).toBe(0);
  await recover(id);
  const ours = [hostile.origin, sandbox.origin, config.publicUrl];
  expect([...called].filter((origin) => !ours.includes(origin))).toEqual([]);
});

test.each([301, 302, 303, 307, 308])(
  'a redirect (%d) is not followed, and the dashboard says so',
  async (status) => {
    const { browser, company, failureWith, recover } = await newCompany();
    const { id, error } = await failureWith(({ response }) => {
      response
        .writeHead(status, goodHeaders({ location: `http://127.0.0.1:${trapPort}/api/contacts` }))
        .end();
    });
    expect(error).toBe(`The service answered with a redirect (${status}), which is not followed.`);
    expect((await browser.get(`/instances/${id}`)).body).toContain('which is not followed');
    expect(hostile.asked(company.id).length).toBe(1);
    expect(calls).toBe(0);
    await recover(id);
  },
);

test('a page that names itself is asked for again, not taken, until it leads on', async () => {
  const { company, browser } = await newCompany();
  const said = Promise.withResolvers<void>();
  hostile.answer(company.id, ({ count, url, response }) => {
    sendPage(response, ['crd_1'], url.href);
    if (count === 2) said.resolve();
  });
  const id = await install(browser, company);
  await said.promise;
  const held = await waitForStatus(browser, id, ({ resources }) => Boolean(resources.contacts?.error));
  expect(held.resources.contacts?.error).toContain('names itself');
  expect(held.resources.contacts).toMatchObject({ pages: 0, stored: 0 });
  hostile.relent(company.id);
  await waitForStatus(browser, id, isSynced);
  expect((await downloadIds(browser, id, 'contacts')).length).toBe(CONTACTS);
});

test('the next page is asked for as the page before gave it, sign by sign', async () => {
  const { company, browser } = await newCompany();
  const target = "/api/contacts?page_token='a%27b'&Order=~%2f%2F";
  hostile.answer(company.id, ({ count, response }) =>
    sendPage(response, idsOf(count), count % 2 === 1 ? hostile.origin + target : null),
  );
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  expect(hostile.asked(company.id)).toEqual(['/api/contacts?limit=100', target]);
});

test.each([2, 5])(
  'a list whose %d pages have all one address is not taken, with or without what its first answers held',
  async (pages) => {
    const { company, failureWith, recover } = await newCompany();
    const { id, error, status } = await failureWith(({ count, url, response }) => {
      const page = ((count - 1) % pages) + 1;
      sendPage(response, idsOf(page), page === pages ? null : url.href);
    });
    expect(error).toContain('A list whose pages have all one address cannot be copied');
    expect(hostile.asked(company.id).length).toBe(2);
    expect(status.resources.contacts).toMatchObject({ deleted: 0, stored: 0 });
    await recover(id);
  },
);

test.each<[string, (turn: HostileTurn) => void]>([
  ['trouble', ({ response }) => response.writeHead(503, goodHeaders()).end('{}')],
  ['a connection that is broken off', ({ response }) => response.destroy()],
  [
    'a refusal by the limit',
    ({ response }) => response.writeHead(429, goodHeaders({ 'retry-after': '2' })).end('{}'),
  ],
  ...[302, 403, 409, 423].map((status): [string, (turn: HostileTurn) => void] => [
    `a refusal that is to pass (${status})`,
    ({ response }) => response.writeHead(status, goodHeaders({ 'retry-after': '1' })).end('{}'),
  ]),
])(
  'nor is one of which the second asking brings %s: what comes later may be the page after it',
  async (_what, respond) => {
    const { company, failureWith, recover } = await newCompany();
    const { id, error, status } = await failureWith((turn) => {
      const { count, url, response } = turn;
      if (count === 2) return respond(turn);
      sendPage(response, idsOf(count), count === 1 ? url.href : null);
    });
    expect(error).toContain(NOT_AGAIN);
    expect(hostile.asked(company.id).length).toBe(2);
    expect(status.resources.contacts).toMatchObject({ deleted: 0, stored: 0 });
    await recover(id);
  },
);

test('nor is one that the limit leaves no second asking for', async () => {
  const { company, failureWith, recover } = await newCompany();
  const { id, error, status } = await failureWith(async ({ count, url, response }) => {
    // What is told with the other list would be newer word of the limit.
    await waitFor(async () =>
      (await control.requests()).some(
        (row) => row.company_id === company.id && row.path.endsWith('/conversations'),
      ),
    );
    const usedUp = { [HEADER.remaining]: '0', [HEADER.reset]: String(Math.ceil(Date.now() / 1_000) + 65) };
    sendPage(response, idsOf(count), url.href, usedUp);
  });
  expect(error).toContain(NOT_AGAIN);
  expect(hostile.asked(company.id).length).toBe(1);
  expect(status.resources.contacts).toMatchObject({ deleted: 0, stored: 0 });
  const redis = new Redis(redisUrl);
  await writeBudgetState(redis, company.id, { flight: {} });
  redis.disconnect();
  await recover(id);
});

test('two pages that lead to each other end the run within a few requests, and nothing is taken for deleted', async () => {
  const { company, failureWith, recover } = await newCompany();
  const { id, error, status } = await failureWith(({ url, response }) => {
    const page = url.searchParams.get('page') ?? '1';
    sendPage(response, idsOf(page), `${hostile.origin}/api/contacts?page=${page === '2' ? '3' : '2'}`);
  });
  expect(error).toContain('circle');
  expect(hostile.asked(company.id).length).toBeLessThan(10);
  expect(status.resources.contacts).toMatchObject({ deleted: 0, stored: 200 });
  await recover(id);
});

test.each<[string, (turn: HostileTurn) => void]>([
  [
    'a circle of many pages at ever new addresses',
    ({ count, response }) =>
      sendPage(response, idsOf(count % 20), `${hostile.origin}/api/contacts?page_token=token${count}`),
  ],
  [
    'the same page at ever new addresses',
    ({ count, response }) =>
      sendPage(response, idsOf(1), `${hostile.origin}/api/contacts?page_token=token${count}`),
  ],
])('%s ends the run, by what its records tell', async (_what, respond) => {
  const { company, failureWith, recover } = await newCompany();
  const { id, error, status } = await failureWith(respond);
  expect(error).toContain('pages repeat themselves: 64 pages');
  expect(hostile.asked(company.id).length).toBeLessThan(75);
  expect(status.resources.contacts).toMatchObject({ deleted: 0 });
  await recover(id);
});

test.each<[string, number, (page: number) => string[], string]>([
  ['pages with nothing on them', 16_384, () => [], 'does not get on: 16384 pages held only 0 records'],
  [
    'pages of ever new records',
    MOST_PAGES,
    (page) => idsOf(page, 1),
    `does not end after ${MOST_PAGES} pages`,
  ],
])('%s, without an end, end the run at a number of pages', async (_what, bound, ids, reason) => {
  const { company, browser, failureWith, recover } = await newCompany();
  const isSet = Promise.withResolvers<void>();
  const failed = failureWith(({ count, response }) => {
    const next = `${hostile.origin}/api/contacts?page_token=token${count}`;
    if (count < 3) sendPage(response, ids(count), next);
    else void isSet.promise.then(() => sendPage(response, ids(count), next));
  });
  await expect.poll(() => hostile.asked(company.id).length).toBe(3);
  const [instance] = await db
    .selectFrom('instances')
    .selectAll()
    .where('company_id', '=', company.id)
    .execute();
  // As if it had been going on for hours: the run counts its pages where no crash loses them.
  await db
    .updateTable('runs')
    .set({ pages: bound - 40 })
    .where('instance_id', '=', instance?.id ?? '')
    .where('resource', '=', 'contacts')
    .execute();
  isSet.resolve();
  const { id, error } = await failed;
  expect(error).toContain(reason);
  expect(hostile.asked(company.id).length).toBeLessThan(60);
  expect((await readStatus(browser, id)).resources.contacts?.pages).toBeGreaterThanOrEqual(bound - 2);
  await recover(id);
});
