import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { Redis } from 'ioredis';
import { afterAll, expect, test, vi } from 'vitest';
import type { OwnLogic } from '../../src/sync/own-logic.ts';
import type { InstanceStatus } from '../../src/sync/status-types.ts';
import { RefreshPauses } from '../../src/tokens/refresh-pauses.ts';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import { findFreePort } from '../support/free-port.ts';
import { createHttpSession, type HttpPage, type HttpSession } from '../support/http-session.ts';
import { consent, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';
import { Canaries } from './canaries.ts';
import { startEchoProxy } from './echo-proxy.ts';
import { recordRedis } from './redis-record.ts';

// Much is done and looked at in each of them.
vi.setConfig({ testTimeout: 120_000 });

const OPERATOR_PASSWORD = 'operator: correct horse & battery';

// Before the app stands a service that repeats, in its refusals, all that it was sent.
const proxy = await startEchoProxy();
let ownLogic: OwnLogic = async () => undefined;
const testApp = await startTestApp({
  workers: false,
  env: {
    SERVICE_API_URL: `${proxy.origin}/api`,
    SERVICE_AUTH_URL: `${proxy.origin}/auth`,
    OPERATOR_PASSWORD,
  },
  ownLogic: (batch, context) => ownLogic(batch, context),
});
const { app, config, control, sandbox, log } = testApp;
proxy.lead(sandbox.origin);
const redis = await recordRedis(testApp.redisUrl);
const connection = new Redis(testApp.redisUrl);
afterAll(() => connection.disconnect());
const workers = app.startWorkers();
afterAll(() => workers.close());
const databasePath = config.databaseUrl.replace(/^file:/, '');
const company = await control.addCompany({ name: 'Acme', plan: 'starter', contacts: 30, conversations: 30 });

const canaries = new Canaries();
canaries.add('client secret', config.service.clientSecret);
canaries.add('session secret', config.sessionSecret);
canaries.add('operator password', OPERATOR_PASSWORD);
const redisPassword = decodeURIComponent(new URL(testApp.redisUrl).password);
if (redisPassword !== '') canaries.add('password of Redis', redisPassword);
for (const { key } of config.tokenKeys) {
  for (const form of ['base64', 'base64url', 'hex', 'latin1'] as const) {
    canaries.add('token key', key.toString(form).replace(/=+$/, ''));
  }
}

/** What came out of the app, by where it came out. */
const outputs: { where: string; text: string }[] = [];

/** A browser whose every answer is kept, but for the cookies, which are what they are there for. */
function watchedSession(): HttpSession {
  const session = createHttpSession(config.publicUrl);
  const keep = (page: HttpPage): HttpPage => {
    const headers = [...page.headers].filter(([name]) => name !== 'set-cookie').flat();
    outputs.push({
      where: `${page.status} ${page.url.pathname}`,
      text: `${headers.join('\n')}\n${page.body}`,
    });
    const cookie = decodeURIComponent(session.cookies.get(new URL(config.publicUrl), SESSION_COOKIE) ?? '');
    const id = /^s:([^.]+)\./.exec(cookie)?.[1];
    if (id !== undefined) canaries.add('session id', id);
    return page;
  };
  return {
    cookies: session.cookies,
    get: async (...request) => keep(await session.get(...request)),
    post: async (...request) => keep(await session.post(...request)),
    submit: async (...request) => keep(await session.submit(...request)),
  };
}

const browser = watchedSession();

function cookieOf({ cookies }: HttpSession): string {
  return cookies.header(new URL(config.publicUrl)) ?? '';
}

/** The tokens that the service has given out last. */
function lastTokens(): { access: string; refresh: string } {
  const answer = JSON.parse(proxy.tokenBodies.at(-1) ?? '{}') as Record<string, string>;
  return { access: answer.access_token ?? '', refresh: answer.refresh_token ?? '' };
}

/** Every page and every machine's answer that shows something of the instance. */
async function lookAround(id: string): Promise<void> {
  const pages = ['', '/status', '/contacts', '/conversations', '/contacts.ndjson', '/nowhere'];
  for (const page of pages) await browser.get(`/instances/${id}${page}`);
  for (const page of ['/', '/metrics', '/healthz', '/readyz', '/nowhere?code=abc']) await browser.get(page);
  for (const password of [OPERATOR_PASSWORD, 'wrong']) {
    const authorization = `Basic ${Buffer.from(`operator:${password}`).toString('base64')}`;
    await browser.get('/ops', { headers: { authorization } });
  }
  outputs.push({ where: 'Redis', text: (await redis.dump()).join('\n') });
  const around = readdirSync(dirname(databasePath), { recursive: true, withFileTypes: true });
  for (const file of around.filter((entry) => entry.isFile())) {
    const path = join(file.parentPath, file.name);
    // Read by another process: when this one closes such a file, the locks go that SQLite holds on it here.
    if (path.startsWith(databasePath)) {
      const text = execFileSync('cat', [path], { encoding: 'latin1', maxBuffer: Number.POSITIVE_INFINITY });
      outputs.push({ where: file.name, text });
    }
  }
}

async function press(id: string, button: string): Promise<void> {
  await browser.submit((await browser.get(`/instances/${id}`)).form(`/instances/${id}/${button}`));
}

async function refusedInstall(): Promise<HttpPage> {
  const page = await consent(browser, await browser.get('/install'), company);
  expect(page.status).toBeGreaterThanOrEqual(400);
  proxy.bePolite();
  return page;
}

/** All that was found of the secrets that there are by now. */
async function found(): Promise<string[]> {
  for (const body of proxy.tokenBodies) {
    const isAnswer = body.startsWith('{');
    const values = isAnswer
      ? (JSON.parse(body) as Record<string, string>)
      : Object.fromEntries(new URLSearchParams(body));
    for (const name of ['access_token', 'refresh_token', 'code']) {
      const value = values[name];
      if (value !== undefined) canaries.add(name.replace('_', ' '), value);
    }
  }
  const commands = { where: 'the commands to Redis', text: redis.commands() };
  const logged = { where: 'the log', text: log.text() };
  const hits: string[] = [];
  for (const { where, text } of [...outputs, commands, logged]) {
    hits.push(...canaries.hits(where, /Redis/.test(where) ? withoutSessionKeys(text) : text));
    // Connections that are ended meanwhile must not be taken for open ones.
    await turn();
  }
  return [...new Set(hits)];
}

/**
 * The id of a session is the key of its own record in Redis, and may stand nowhere else: without SESSION_SECRET, which
 * signs the cookie, it opens nothing.
 */
function withoutSessionKeys(text: string): string {
  return text.replace(/(^|[\s"])((?:ended-)?session:)[\w-]{32}(?=[\s"]|$)/gm, '$1$2…');
}

test('no secret comes out by installs that fail', async () => {
  const start = await browser.get('/install');
  await consent(browser, start, company, { decision: 'deny' });
  await consent(browser, await browser.get('/install'), company, {
    teammateId: company.teammates.find(({ is_admin }) => !is_admin)?.id ?? '',
  });
  for (const status of [400, 401, 500]) {
    proxy.beRude({ path: /oauth\/token/, status, times: 1 });
    await refusedInstall();
  }
  for (const error of ['invalid_grant', 'invalid_client', 'unauthorized_client']) {
    proxy.beRude({ path: /oauth\/token/, status: 400, body: { error }, times: 1 });
    await refusedInstall();
  }
  proxy.beRude({ path: /oauth\/token/, status: 200, body: { refresh_token: 7 }, times: 1 });
  await refusedInstall();
  for (const status of [401, 500]) {
    proxy.beRude({ path: /api\/me/, status, times: 4 });
    await refusedInstall();
  }
  expect(await found()).toEqual([]);
});

let id: string;

/** Whether every resource has stopped for now, well or not. */
function isOver(status: InstanceStatus): boolean {
  return Object.values(status.resources).every(({ state }) => state === 'idle' || state === 'failed');
}

/** Starts a sync; looks around when it meets trouble, or else its end, and again when all is over. */
async function syncThroughTrouble(): Promise<void> {
  // Refreshes that failed before must not keep the next one from being asked for.
  await new RefreshPauses(connection).end(['trouble', 'rejection'], id);
  const before = (await readStatus(browser, id)).resources.contacts?.started_at;
  await press(id, 'sync');
  await waitForStatus(browser, id, (status) => {
    const { error, started_at, finished_at } = status.resources.contacts ?? {};
    return error !== null || (started_at !== before && finished_at !== null) || status.status !== 'active';
  });
  await lookAround(id);
  await waitForStatus(browser, id, (status) => isOver(status) || status.status !== 'active');
  await lookAround(id);
}

test('no secret comes out by an install, a sync, rejected tokens and errors of the API', async () => {
  id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  await lookAround(id);
  const refusals = [
    [401, 1],
    [401, 2],
    [403, 1],
    [404, 1],
    [429, 1],
    [500, 2],
    [302, 1],
  ] as const;
  for (const [status, times] of refusals) {
    proxy.beRude({ path: /api\/contacts/, status, times });
    await syncThroughTrouble();
  }
  // While it is waited for, the dashboard says what the service has said.
  proxy.beRude({ path: /api\/contacts/, status: 503, retryAfter: 2, times: 1 });
  await syncThroughTrouble();
  expect(outputs.some(({ text }) => text.includes('It asked to wait before the next try.'))).toBe(true);
  expect(await found()).toEqual([]);
});

test('no secret comes out by good answers that repeat one: a name, what is set aside, a next page', async () => {
  proxy.amend(/api\/me/, (body, token) => ({ ...body, name: `Acme, who sent ${token}` }));
  expect(await install(browser, company)).toBe(id);
  expect((await browser.get(`/instances/${id}`)).body).toContain('Acme, who sent [redacted]');
  const items = (token: string) => [`sent ${token}`, { nested: { [token]: encodeURIComponent(token) } }];
  proxy.amend(/api\/contacts/, (body, token) => ({ ...body, _results: items(token) }));
  await syncThroughTrouble();
  expect((await browser.get(`/instances/${id}`)).body).toContain('sent [redacted]');
  proxy.bePolite();
  const nexts: [(token: string) => string, string][] = [
    [String, 'the access token'],
    [encodeURIComponent, 'the access token'],
    [(token) => Buffer.from(token).toString('base64url'), 'a secret of the app'],
    [() => lastTokens().refresh, 'a secret of the app'],
    [() => config.service.clientSecret, 'a secret of the app'],
  ];
  for (const [form, what] of nexts) {
    proxy.amend(/api\/contacts/, (body, token) => {
      const next = `${proxy.origin}/api/contacts?page=2&access_token=${form(token)}`;
      return { ...body, _pagination: { next } };
    });
    await syncThroughTrouble();
    const { contacts } = (await readStatus(browser, id)).resources;
    expect(contacts).toMatchObject({ state: 'failed', pages: 0 });
    expect(contacts?.error).toContain(`an address that holds ${what}`);
    proxy.bePolite();
  }
  await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  expect(await found()).toEqual([]);
});

test('no secret comes out by own logic that fails with tokens in its error, and logs them', async () => {
  const { access, refresh } = lastTokens();
  const forms = [access, Buffer.from(`:${access}`).toString('base64'), JSON.stringify({ refresh })];
  for (const words of forms) {
    let calls = 0;
    ownLogic = async (_batch, { logger }) => {
      calls++;
      if (calls > 1) return;
      logger.trace({ sent: words, nested: { headers: [`x ${words}`] } }, `sending ${words}`);
      const cause = Object.assign(new Error(`fetch failed ${words}`), { options: { auth: words } });
      throw Object.assign(new Error(`The warehouse refused ${words}`, { cause }), {
        name: `Refused ${words}`,
        config: words,
      });
    };
    const change = { id: `crd_${calls}${forms.indexOf(words)}`, name: 'New' };
    const body = { _pagination: { next: null }, _links: { self: '' }, _results: [change] };
    await control.fault({
      match: { path: '/contacts', company_id: company.id },
      fault: { status: 200, body },
      times: 2,
    });
    await syncThroughTrouble();
    expect(calls).toBeGreaterThan(1);
  }
  ownLogic = async () => undefined;
  expect(log.text()).toContain('The warehouse refused');
  expect(await found()).toEqual([]);
});

test('no secret comes out as the id of a company: the install fails', async () => {
  const forms: ((token: string) => string)[] = [
    () => lastTokens().refresh,
    () => config.service.clientSecret,
    (token) => Buffer.from(token).toString('hex'),
    (token) => token.slice(10),
  ];
  const named: string[] = [];
  for (const form of forms) {
    proxy.amend(/api\/me/, (body, token) => {
      named.push(form(token));
      return { ...body, id: form(token) };
    });
    expect((await refusedInstall()).body).toContain('its id holds a secret of the app');
  }
  await lookAround(id);
  const seen = [...outputs.map(({ text }) => text), redis.commands(), log.text()];
  expect(new Set(named).size).toBe(forms.length);
  expect(named.filter((name) => seen.some((text) => text.includes(name)))).toEqual([]);
  expect(await found()).toEqual([]);
});

test('no secret comes out by refreshes that fail', async () => {
  const answers = [
    { status: 500, times: 1 },
    { status: 400, times: 1 },
    { status: 429, times: 1 },
    { status: 401, times: 1, body: { error: 'invalid_client' } },
    { status: 200, times: 1, body: { access_token: 7 } },
  ];
  for (const answer of answers) {
    proxy.beRude({ path: /oauth\/token/, ...answer });
    proxy.beRude({ path: /api\/contacts/, status: 401, times: 1 });
    await syncThroughTrouble();
  }
  expect(await found()).toEqual([]);
});

test('no secret comes out by jobs that fail, and what Redis keeps of them is looked at', async () => {
  const database = new Sqlite(databasePath);
  database.exec('alter table runs rename to runs_away');
  const failed = () => log.lines.some(({ msg }) => msg === 'a job failed');
  await app.queues.enqueue([{ instanceId: id, resource: 'contacts' }]);
  await waitFor(failed);
  outputs.push({ where: 'Redis', text: (await redis.dump()).join('\n') });
  database.exec('alter table runs_away rename to runs');
  database.close();
  // Redis itself says that a job has failed, and why: the search does see failures.
  expect(outputs.at(-1)?.text).toMatch(/failedReason.*no such table/s);
  expect(await found()).toEqual([]);
});

test('no secret comes out by processes of their own, at every level of the log', async () => {
  const port = await findFreePort();
  const env = { ...testApp.env, LOG_LEVEL: 'trace', PORT: String(port), WORKER_PORT: '0' };
  const processes = [spawnEntry('src/worker.ts', env), spawnEntry('src/web.ts', env)];
  await Promise.all(processes.map((started) => started.waitForOutput(/the workers run|the web app listens/)));
  await workers.close();
  proxy.beRude({ path: /api\/contacts/, status: 401, times: 1 });
  proxy.beRude({ path: /api\/contacts/, status: 403, times: 1 });
  await syncThroughTrouble();
  await browser.get(`http://127.0.0.1:${port}/instances/${id}`, { headers: { cookie: cookieOf(browser) } });
  // A command of the operator's, and its failure.
  processes.push(
    spawnEntry('src/reencrypt.ts', env),
    spawnEntry('src/web.ts', { ...env, PORT: 'x', SESSION_SECRET: 'short' }),
  );
  await Promise.all(processes.slice(2).map(({ exited }) => exited));
  await Promise.all(processes.slice(0, 2).map((started) => started.stop('SIGTERM')));
  for (const started of processes) {
    expect(started.output()).not.toBe('');
    outputs.push({ where: 'the output of a process', text: started.output() });
  }
  expect(processes[0]?.output()).toContain('403');
  expect(await found()).toEqual([]);
});

test('no secret comes out when the grant ends, a new one comes, and when it is given up', async () => {
  const again = app.startWorkers();
  afterAll(() => again.close());
  proxy.beRude({ path: /oauth\/token/, status: 400, body: { error: 'invalid_grant' }, times: 1 });
  proxy.beRude({ path: /api\/contacts/, status: 401, times: 1 });
  await new RefreshPauses(connection).end(['trouble', 'rejection'], id);
  await press(id, 'sync');
  await waitForStatus(browser, id, ({ status }) => status === 'needs_reauthorization');
  await lookAround(id);
  expect(await install(browser, company)).toBe(id);
  await waitForStatus(browser, id, isSynced);
  await lookAround(id);
  await press(id, 'disconnect');
  await lookAround(id);
  expect(await found()).toEqual([]);
});

test('what was searched for, and where', () => {
  expect(canaries.names.filter((name) => name !== 'password of Redis')).toEqual([
    'access token',
    'client secret',
    'code',
    'operator password',
    'refresh token',
    'session id',
    'session secret',
    'token key',
  ]);
  const places = new Set(outputs.map(({ where }) => where.replace(/ins_\w+/, ':id')));
  const expected = [
    '200 /instances/:id',
    '200 /instances/:id/status',
    '200 /metrics',
    '200 /ops',
    '401 /ops',
    '404 /nowhere',
    '502 /oauth/callback',
    'Redis',
    'app.db',
    'app.db-wal',
    'the output of a process',
  ];
  expect(expected.filter((where) => !places.has(where))).toEqual([]);
  // The stand-in for Redis may not tell its commands; what it holds is searched all the same.
  if (!redis.commands().includes('-ERR')) expect(redis.commands()).toMatch(/"tokens:.*:lock" .*"PX"/);
  const levels = new Set(log.lines.map(({ level }) => level));
  expect([...levels]).toEqual(expect.arrayContaining(['trace', 'debug', 'info', 'warn', 'error']));
});
