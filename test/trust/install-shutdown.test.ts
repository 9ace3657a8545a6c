import { get, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { expect, test, vi } from 'vitest';
import { findFreePort } from '../support/free-port.ts';
import { createHttpSession } from '../support/http-session.ts';
import { redisUrlAt, startRedisServer } from '../support/redis-server.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTokenServer } from '../tokens/token-server.ts';

// A web process that starts, and takes most of its ten seconds to end.
vi.setConfig({ testTimeout: 60_000 });

/** How long after a signal the service answers, in milliseconds: longer than refreshes are waited for, or clients that read slowly. */
const SLOW_MS = 5_500;

/** How long after a signal, where nothing but the install keeps the process, in milliseconds. */
const SOON_MS = 1_000;

const GRANT = { access_token: 'at-1', refresh_token: 'rt-1', token_type: 'Bearer' };
const COMPANY = { id: 'cmp_1', name: 'Acme' };

type Question = 'the exchange of the code' | 'the company of the grant';

const server = await startTokenServer();

/** A web process with an install of a browser under way, whose question waits for its answer. */
async function startInstalling(waiting: Question) {
  const { begun, ...process } = await startWeb(waiting);
  const page = begun.browser.get(begun.address, { follow: false });
  // Whoever looks at it does so later on.
  page.catch(() => undefined);
  await process.asked;
  return { page, ...process };
}

/** A web process, and the way back of an install whose question will wait for its answer. */
async function startWeb(waiting: Question) {
  const path = `${tempDir()}/app.db`;
  const port = await findFreePort();
  const redisServer = await startRedisServer();
  const publicUrl = `http://127.0.0.1:${port}`;
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  server.answer = async (response: ServerResponse) => {
    const isExchange = server.requests.at(-1)?.method === 'POST';
    if (isExchange === (waiting === 'the exchange of the code')) {
      asked.resolve();
      await answered.promise;
    }
    const body = JSON.stringify(isExchange ? GRANT : COMPANY);
    response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  };
  const web = spawnEntry('src/web.ts', {
    SERVICE_API_URL: server.url,
    SERVICE_AUTH_URL: server.url,
    CLIENT_ID: 'app',
    CLIENT_SECRET: 'secret',
    PUBLIC_URL: publicUrl,
    PORT: String(port),
    DATABASE_URL: `file:${path}`,
    REDIS_URL: redisUrlAt(redisServer.port),
  });
  await web.waitForOutput(/the web app listens/);
  const browser = createHttpSession(publicUrl);
  const { location } = await browser.get('/install', { follow: false });
  const state = location?.searchParams.get('state');
  const address = `/oauth/callback?code=c-1&state=${state}`;
  const stored = () => {
    const database = new Sqlite(path, { readonly: true });
    const row = database
      .prepare('select company_id, status, length(refresh_token) > 0 as has_token from instances join tokens')
      .get();
    database.close();
    return row;
  };
  const begun = { browser, address, publicUrl };
  return { path, web, begun, asked: asked.promise, answer: () => answered.resolve(), stored };
}

/** Comes back from the consent page by a browser that can go away. */
function ask({ browser, address, publicUrl }: Awaited<ReturnType<typeof startWeb>>['begun']) {
  const url = new URL(address, publicUrl);
  const cookie = browser.cookies.header(url) ?? '';
  return get(url, { headers: { cookie } }).on('error', () => undefined);
}

const INSTALLED = { company_id: 'cmp_1', status: 'active', has_token: 1 };

test.each<Question>(['the exchange of the code', 'the company of the grant'])(
  'a web process that ends while %s takes its time waits for it: the install stands, and its browser is led there',
  async (waiting) => {
    const { web, page, answer, stored } = await startInstalling(waiting);
    const end = web.stop('SIGTERM');
    await web.waitForOutput(/shutting down/);
    await sleep(SLOW_MS);
    answer();
    expect((await page).location?.pathname).toMatch(/^\/instances\/ins_/);
    expect(await end).toEqual({ code: 0, signal: null });
    expect(stored()).toEqual(INSTALLED);
  },
);

test.each<Question>(['the exchange of the code', 'the company of the grant'])(
  'a web process that ends while %s gets no answer ends in time: the page and the log say what may be lost',
  async (waiting) => {
    const { web, page, stored } = await startInstalling(waiting);
    const end = web.stop('SIGTERM');
    const { status, body } = await page;
    expect(status).toBe(503);
    expect(body).toContain('The app was stopped before the install was done');
    expect(body).toContain('it may have ended an earlier authorization of the company by that');
    expect(await end).toEqual({ code: 0, signal: null });
    expect(web.output()).toMatch(/"level":"error".*"msg":"The app was stopped before the install was done"/);
    expect(web.output()).not.toContain('the shutdown takes too long');
    expect(stored()).toBeUndefined();
  },
);

test.each<Question>(['the exchange of the code', 'the company of the grant'])(
  'a web process that ends waits for %s also where the browser has gone away',
  async (waiting) => {
    const { web, begun, asked, answer, stored } = await startWeb(waiting);
    const request = ask(begun);
    await asked;
    request.destroy();
    const end = web.stop('SIGTERM');
    await web.waitForOutput(/shutting down/);
    await sleep(SOON_MS);
    answer();
    expect(await end).toEqual({ code: 0, signal: null });
    expect(stored()).toEqual(INSTALLED);
  },
);

test('a web process that cuts an install off whose browser has gone away says so', async () => {
  const { web, begun, asked } = await startWeb('the exchange of the code');
  const request = ask(begun);
  await asked;
  request.destroy();
  expect(await web.stop('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(web.output()).toMatch(/"level":"error".*"msg":"an install was cut off by the end of the process"/);
});

test('a web process whose database is locked when it ends tries on to write what an install has brought', async () => {
  const { path, web, page, answer, stored } = await startInstalling('the company of the grant');
  const other = new Sqlite(path);
  other.exec('begin immediate');
  answer();
  const end = web.stop('SIGTERM');
  await web.waitForOutput(/shutting down/);
  await web.waitForOutput(/a new grant cannot be written yet/);
  other.close();
  // The page is cut off a while before the process ends, which comes first on a slow machine; the grant is not.
  const { location, body } = await page;
  if (location === undefined) expect(body).toContain('The app was stopped before the install was done');
  else expect(location.pathname).toMatch(/^\/instances\/ins_/);
  expect(await end).toEqual({ code: 0, signal: null });
  expect(stored()).toEqual(INSTALLED);
});

test('a web process whose database stays locked when it ends says whose grant is lost, and ends with code 1', async () => {
  const { path, web, page, answer, stored } = await startInstalling('the company of the grant');
  const other = new Sqlite(path);
  other.exec('begin immediate');
  answer();
  expect(await web.stop('SIGTERM')).toEqual({ code: 1, signal: null });
  other.close();
  expect((await page).status).toBe(503);
  expect(web.output()).toMatch(
    /"level":"error".*"instanceId":"ins_\w+".*"msg":"a new grant is lost: it could not be written before the end of the process"/,
  );
  expect(web.output()).not.toContain('the shutdown takes too long');
  expect(stored()).toBeUndefined();
});
