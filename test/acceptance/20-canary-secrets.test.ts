import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { Redis } from 'ioredis';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../support/free-port.ts';
import type { HttpBrowser } from '../support/http-browser.ts';
import { startScript } from '../support/spawn-entry.ts';
import { diskContents, dump } from './support/database.ts';
import { createWorld } from './support/world.ts';

type Kind = 'access_token' | 'refresh_token' | 'code' | 'session id' | 'configured';

const KINDS: Kind[] = ['access_token', 'refresh_token', 'code', 'session id', 'configured'];
const PLACES = ['log', 'redis', 'page', 'metrics', 'database', 'dump'] as const;

describe('20. Canary secrets (client secret, tokens, codes, session ids) appear in no log, Redis key or value, page, metric, database file or dump as plain text, Base64 or URL-encoded.', async () => {
  const secrets = Object.fromEntries(KINDS.map((kind) => [kind, new Set()])) as Record<Kind, Set<string>>;
  const seen = Object.fromEntries(PLACES.map((place) => [place, ''])) as Record<
    (typeof PLACES)[number],
    string
  >;

  // Stands before the service: notes the tokens, and repeats in the next answers what it was sent.
  const echoes: { path: RegExp; status: number; error?: string }[] = [];
  const forward = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const [path = '', sent] = [incoming.url, await text(incoming)];
    const at = echoes.findIndex((echo) => echo.path.test(path));
    const [echo] = at === -1 ? [] : echoes.splice(at, 1);
    const said = `You said ${incoming.headers.authorization} and ${sent}`;
    const { host: _, connection: __, 'transfer-encoding': ___, ...headers } = incoming.headers;
    const answer =
      echo === undefined
        ? await request(`${world.sandbox.origin}${path}`, {
            method: (incoming.method ?? 'GET') as 'GET',
            headers,
            body: sent === '' ? null : sent,
          })
        : undefined;
    const refusal = { error: echo?.error, error_description: said, _error: { title: said, message: said } };
    const body = (await answer?.body.text()) ?? JSON.stringify(refusal);
    if (path.includes('/oauth/token')) {
      const found = { ...Object.fromEntries(new URLSearchParams(sent)), ...JSON.parse(body) };
      for (const kind of KINDS) if (typeof found[kind] === 'string') secrets[kind].add(found[kind]);
    }
    outgoing.writeHead(answer?.statusCode ?? echo?.status ?? 0, {
      ...answer?.headers,
      'content-length': Buffer.byteLength(body),
    });
    outgoing.end(body);
  };
  const proxyPort = await findFreePort();
  const proxy = createServer((...exchange) => void forward(...exchange)).listen(proxyPort, '127.0.0.1');
  afterAll(() => proxy.close().closeAllConnections());

  const world = await createWorld({
    env: {
      SERVICE_API_URL: `http://127.0.0.1:${proxyPort}/api`,
      SERVICE_AUTH_URL: `http://127.0.0.1:${proxyPort}/auth`,
      OPERATOR_PASSWORD: 'operator: correct horse & battery',
      LOG_LEVEL: 'trace',
    },
  });
  const { CLIENT_SECRET = '', SESSION_SECRET = '', OPERATOR_PASSWORD = '', TOKEN_KEYS = '' } = world.env;
  const key = TOKEN_KEYS.slice(TOKEN_KEYS.indexOf(':') + 1).replace(/=+$/, '');
  for (const secret of [CLIENT_SECRET, SESSION_SECRET, OPERATOR_PASSWORD, key])
    secrets.configured.add(secret);

  const lookAround = async (browser: HttpBrowser, id: string) => {
    for (const value of Object.values(browser.cookies())) {
      const cookie = decodeURIComponent(value);
      secrets['session id'].add(cookie);
      // A signed cookie is `s:id.signature`.
      secrets['session id'].add(/^s:([^.]+)/.exec(cookie)?.[1] ?? cookie);
    }
    const headers = {
      authorization: `Basic ${Buffer.from(`operator:${OPERATOR_PASSWORD}`).toString('base64')}`,
    };
    const paths = ['', '/status', '/contacts', '/conversations', '/contacts.ndjson', '/runs', '/nowhere'];
    const all = [
      '/',
      '/readyz',
      '/oauth/callback?code=made-up&state=made-up',
      ...paths.map((path) => `/instances/${id}${path}`),
    ];
    for (const path of all) seen.page += (await browser.get(path)).body;
    seen.page += (await browser.get('/ops', { headers })).body;
    seen.metrics += (await browser.get('/metrics')).body;
    seen.redis += await dumpRedis(world.redis.url);
    seen.dump += await dump(world.databaseUrl);
    seen.database += await diskContents(world.databaseUrl);
  };

  beforeAll(async () => {
    const processes = Object.values(await world.start());
    const browser = world.browser();
    const company = await world.control.addCompany({ name: 'Canary' });
    const tryInstall = async () => {
      const callback = await world.authorize(browser, company);
      secrets.code.add(callback.searchParams.get('code') ?? '');
      seen.page += (await browser.get(callback)).body;
    };
    for (const error of ['invalid_client', 'invalid_grant']) {
      echoes.push({ path: /oauth\/token/, status: 400, error });
      await tryInstall();
    }
    const id = await world.install(browser, company);
    await world.waitForSync(browser, id);
    await lookAround(browser, id);
    const syncWith = async (...answers: typeof echoes) => {
      echoes.push(...answers);
      await world.press(browser, id, 'sync');
      await world.waitForStatus(browser, id, () => echoes.length === 0);
      await lookAround(browser, id);
    };
    await syncWith({ path: /api\/contacts/, status: 401 });
    await world.waitForSync(browser, id);
    await syncWith({ path: /api\/contacts/, status: 403 });
    await world.waitForStatus(browser, id, ({ resources }) => resources.contacts.error !== null);
    await lookAround(browser, id);
    await world.control.clock({ advance_ms: 24 * 60 * 60_000 });
    await syncWith({ path: /oauth\/token/, status: 400, error: 'invalid_grant' });
    await world.waitForStatus(browser, id, ({ status }) => status === 'needs_reauthorization');
    await tryInstall();
    await world.waitForSync(browser, id);
    await lookAround(browser, id);
    const wrong = { ...world.env, PORT: 'x' };
    processes.push(startScript('reencrypt', world.env), startScript('web', wrong));
    await Promise.all(processes.slice(2).map(({ exited }) => exited));
    await Promise.all(processes.slice(0, 2).map((one) => one.stop()));
    seen.log = processes.map((one) => one.output()).join('\n');
  });

  it('has met every kind of secret, and every place', () => {
    for (const kind of KINDS) expect(secrets[kind].size, kind).toBeGreaterThan(1);
    for (const place of PLACES) expect(seen[place].length, place).toBeGreaterThan(500);
    expect(seen.log).toMatch(/"level":("debug"|20)/);
  });

  it.each(PLACES.flatMap((place) => KINDS.map((kind) => [place, kind] as const)))(
    'in the %s there is no %s',
    (place, kind) => {
      const forms = [...secrets[kind]].flatMap(formsOf);
      const hits = forms.map((form) => seen[place].indexOf(form)).filter((at) => at !== -1);
      expect(hits.map((at) => seen[place].slice(Math.max(0, at - 80), at))).toEqual([]);
    },
  );
});

/** A secret as it may stand in a text; in Base64 of a longer text it begins at any of three places. */
function formsOf(secret: string): string[] {
  const base64 = [0, 1, 2].map((offset) => {
    const bytes = Buffer.from('x'.repeat(offset) + secret);
    // Without the characters that other bytes have a part in.
    return bytes.toString('base64').slice([0, 2, 3][offset], Math.floor((bytes.length * 8) / 6));
  });
  const urlSafe = base64.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'));
  return [...new Set([secret, encodeURIComponent(secret), ...base64, ...urlSafe])];
}

async function dumpRedis(url: string): Promise<string> {
  const redis = new Redis(url);
  const readers: Record<string, (name: string) => Promise<unknown>> = {
    string: (name) => redis.get(name),
    hash: (name) => redis.hgetall(name),
    list: (name) => redis.lrange(name, '0', '-1'),
    set: (name) => redis.smembers(name),
    zset: (name) => redis.zrange(name, '0', '-1'),
    stream: (name) => redis.xrange(name, '-', '+'),
  };
  const lines = (await redis.keys('*')).map(async (name) => {
    const value = await readers[await redis.type(name)]?.(name);
    return `${name} ${JSON.stringify(value)}`;
  });
  return Promise.all(lines)
    .then((all) => all.join('\n'))
    .finally(() => redis.disconnect());
}
