import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Sqlite from 'better-sqlite3';
import { afterAll, expect, test } from 'vitest';
import { consent, install, isSynced } from '../support/install.ts';
import { redisUrlAt, startRedisServer } from '../support/redis-server.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

/** Done before the API answers whose token it is. */
let meanwhile: () => unknown = () => undefined;
let asked = 0;

// An API that knows one company.
const api = createServer(async (_request, response) => {
  asked++;
  await meanwhile();
  const rate = { limit: 120, remaining: 119, reset: Date.now() / 1_000 + 60 };
  for (const [name, value] of Object.entries(rate)) response.setHeader(`x-ratelimit-${name}`, value);
  response.setHeader('content-type', 'application/json').end('{"id":"cmp_known","name":"Known"}');
}).listen(0, '127.0.0.1');
await once(api, 'listening');
afterAll(() => api.close());

const redis = await startRedisServer();
const { app, config, control, session } = await startTestApp({
  workers: false,
  redisUrl: redisUrlAt(redis.port),
  env: { SERVICE_API_URL: `http://127.0.0.1:${(api.address() as AddressInfo).port}/api` },
});
const company = await control.addCompany({ name: 'Known', plan: 'starter' });
const database = new Sqlite(config.databaseUrl.replace(/^file:/, ''), { readonly: true });
afterAll(() => database.close());

/** Token requests that were good. */
async function tokenRequests(): Promise<number> {
  const made = await control.requests();
  return made.filter(({ path, status }) => path === '/oauth/token' && status === 200).length;
}

test.each([
  ['dies', redis.kill, redis.start],
  ['freezes', redis.freeze, redis.unfreeze],
])(
  'when Redis %s while the service says which company it is, the install stands: a page says so, and the service is asked once',
  async (_what, end, begin) => {
    const browser = session();
    const consentPage = await browser.get('/install');
    asked = 0;
    meanwhile = end;
    const page = await consent(browser, consentPage, company);
    expect(page.status).toBe(503);
    expect(page.body).toContain('Not available right now');
    expect(page.body).toContain('The company is installed, but the app cannot reach its own store');
    expect(page.headers.get('retry-after')).toBe('5');
    expect(asked).toBe(1);
    const grants = await tokenRequests();
    meanwhile = () => undefined;
    await begin();
    // Its grant is good: what needs one has it without a new authorization.
    const id = database.prepare('select id from instances').pluck().get() as string;
    await waitFor(() => app.tokens.rotate(id).then(() => true));
    expect(await tokenRequests()).toBe(grants + 1);
    await waitFor(() => install(session(), company));
  },
  60_000,
);

test('an install at whose end Redis is away stands: a page says so, and its sync begins by itself', async () => {
  const server = await startRedisServer();
  const proxy = await startTcpProxy(0);
  const { app, config, control, log, sandbox, session } = await startTestApp({
    workers: false,
    redisUrl: redisUrlAt(server.port),
    env: { SERVICE_API_URL: `http://127.0.0.1:${proxy.port}/api` },
  });
  proxy.lead(Number(new URL(sandbox.apiUrl).port));
  const acme = await control.addCompany({ name: 'Acme', plan: 'starter', contacts: 5, conversations: 5 });
  const browser = session();
  const consentPage = await browser.get('/install');
  const database = new Sqlite(config.databaseUrl.replace(/^file:/, ''));
  proxy.silence();
  const asked = once(proxy.events, 'held');
  const installing = consent(browser, consentPage, acme);
  // It waits to write: all that it wants of Redis afterwards is in vain.
  await asked;
  database.exec('begin immediate');
  await proxy.pass();
  await server.kill();
  database.exec('rollback');
  const page = await installing;
  expect(page.status).toBe(503);
  expect(page.body).toContain(
    'The company is installed, but the app cannot reach its own store at the moment',
  );
  const id = database.prepare('select id from instances').pluck().get() as string;
  database.close();
  expect(log.lines).toContainEqual(expect.objectContaining({ msg: 'sync not started', instanceId: id }));

  await server.start();
  const workers = app.startWorkers();
  await waitFor(async () => isSynced((await app.control.status(id)) ?? expect.unreachable()));
  expect(await install(browser, acme)).toBe(id);
  await workers.close();
});
