import { Redis } from 'ioredis';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type StartedWeb, startWeb } from './start-web.ts';
import { instanceStatus, listStatus } from './status-fixtures.ts';

/** Worker processes that run; undefined when it cannot be told. */
let workers: number | undefined = 2;

const overview = async (page: number) => ({
  instances: [
    instanceStatus({
      name: '<i>Odd</i>',
      resources: {
        contacts: listStatus({
          state: 'failed',
          error: 'It broke.',
          held_deletions: 60,
          handler: { pending: 5, dead_letters: 17, last_error: null, next_try_at: null },
          problems: { rejected: 1_234, rejected_records: [], dead_letters: [] },
        }),
      },
    }),
  ],
  page: Math.min(page, 3),
  total: 234,
  states: { active: 230, needs_reauthorization: 4 },
  lists: { idle: 455, failed: 5 },
  queues: [{ name: 'sync', counts: { waiting: 3, delayed: 1_200 } }],
  workers,
});

function basic(password: string): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(`anyone:${password}`).toString('base64')}` };
}

const PASSWORD = 'correct: hörse';

let web: StartedWeb;
beforeAll(async () => {
  web = await startWeb({ operations: { password: PASSWORD, overview } });
});

describe('/ops', () => {
  it('is not there without a password', async () => {
    const without = await startWeb({ redis: web.redis });
    expect((await without.browser().get('/ops', { headers: basic('') })).status).toBe(404);
  });

  it('asks for the password, and shows instances and queues to who knows it', async () => {
    const asked = await web.browser().get('/ops');
    expect(asked.status).toBe(401);
    expect(asked.headers.get('www-authenticate')).toMatch(/^Basic /);
    const page = await web.browser().get('/ops', { headers: basic(PASSWORD) });
    expect(page.status).toBe(200);
    expect(page.body).toContain('&lt;i&gt;Odd&lt;/i&gt;');
    expect(page.body).toContain('It broke.');
    for (const text of ['pending: 5', 'Dead letters: 17', 'Rejected records: 1,234', 'held: 60']) {
      expect(page.body).toContain(text);
    }
    expect(page.body).toContain('waiting 3, delayed 1,200');
    expect(page.body).toMatch(/Stopped <time datetime="[^"]+">10 Jun 2025, 11:55 UTC</);
  });

  it('says what the process is not ready for, and why', async () => {
    const readiness = async () => ({ ok: false, checks: { redis: 'ok', database: 'It is <locked>.' } });
    const troubled = await startWeb({
      redis: web.redis,
      readiness,
      operations: { password: PASSWORD, overview },
    });
    const page = await troubled.browser().get('/ops', { headers: basic(PASSWORD) });
    expect(page.body).toContain('Not ready: database. It is &lt;locked&gt;.');
    expect(page.body).not.toContain('Not ready: redis');
    expect((await web.browser().get('/ops', { headers: basic(PASSWORD) })).body).not.toContain('Not ready');
  });

  it('shows a hundred instances a page, with ways on and back, and sums of all', async () => {
    const show = async (query: string) =>
      (await web.browser().get(`/ops${query}`, { headers: basic(PASSWORD) })).body;
    const first = await show('');
    expect(first).toContain('Instances (234)');
    expect(first).toContain('active 230, needs reauthorization 4');
    expect(first).toContain('idle 455, failed 5');
    expect(first).toContain('Page 1 of 3');
    expect(first).toContain('rel="next" href="/ops?page=2"');
    expect(first).not.toContain('rel="prev"');
    expect(await show('?page=2')).toContain('rel="prev" href="/ops"');
    const last = await show('?page=77');
    expect(last).toContain('Page 3 of 3');
    expect(last).not.toContain('rel="next"');
    expect(await show('?page=-1')).toContain('Page 1 of 3');
  });

  it.each([
    [0, 'No worker process runs: nothing is copied'],
    [2, 'Worker processes that run: 2'],
    [undefined, ''],
  ])('says how many workers run: %s', async (running, sentence) => {
    workers = running;
    const { body } = await web.browser().get('/ops', { headers: basic(PASSWORD) });
    expect(body).toContain(sentence);
    expect(body.match(/worker process/gi)?.length ?? 0).toBe(running === undefined ? 0 : 1);
  });

  it('lets a program read the status, the records and the changes of an instance with the password', async () => {
    web.domain.instances.set('ins_1', instanceStatus());
    for (const path of ['status', 'contacts.ndjson', 'changes/contacts.ndjson']) {
      const ask = (headers: Record<string, string>) =>
        web.browser().get(`/instances/ins_1/${path}`, { headers });
      expect((await ask(basic(PASSWORD))).status, path).toBe(200);
      expect((await ask(basic('guess'))).status, path).toBe(401);
      expect((await ask({})).status, path).toBe(404);
    }
  });

  it.each(['Basic', 'Basic !!', 'Basic bm9jb2xvbg==', 'Bearer x', 'Basic Og=='])(
    'does not take %s',
    async (authorization) => {
      expect((await web.browser().get('/ops', { headers: { authorization } })).status).toBe(401);
    },
  );
});

describe('the password of /ops', () => {
  it.each([
    ['without its end', PASSWORD.slice(0, -1)],
    ['with something behind it', `${PASSWORD} `],
    ['in capitals', PASSWORD.toUpperCase()],
    ['empty', ''],
    ['far too long', PASSWORD.repeat(500)],
    ['with a NUL', `${PASSWORD}\0`],
  ])('is not taken %s', async (_how, password) => {
    expect((await web.browser().get('/ops', { headers: basic(password) })).status).toBe(401);
  });

  it('is wanted again for every request: no session of a browser opens the page', async () => {
    const browser = web.browser();
    expect((await browser.get('/ops', { headers: basic(PASSWORD) })).status).toBe(200);
    expect((await browser.get('/ops')).status).toBe(401);
  });
});

describe('guessing the password of /ops', () => {
  // Two processes with one Redis, behind a proxy that says who asks.
  let processes: StartedWeb[];
  beforeEach(async () => {
    await web.redis.flushall();
    const options = { redis: web.redis, operations: { password: PASSWORD, overview }, proxyHops: 1 };
    const limits = { operator: 3, operatorInAll: 8 };
    processes = [await startWeb({ ...options, limits }), await startWeb({ ...options, limits })];
  });

  let turn = 0;
  async function attempt(password: string, address: string) {
    const browser = processes[turn++ % 2]?.browser();
    return browser?.get('/ops', { headers: { ...basic(password), 'x-forwarded-for': address } });
  }

  async function guess(address: string, times: number): Promise<number[]> {
    const statuses: number[] = [];
    for (let n = 0; n < times; n += 1) statuses.push((await attempt(`guess ${n}`, address))?.status ?? 0);
    return statuses;
  }

  it('makes an address wait, the right password too, and says how long; others do not wait', async () => {
    expect(await guess('203.0.113.1', 4)).toEqual([401, 401, 401, 429]);
    const held = await attempt(PASSWORD, '203.0.113.1');
    expect(held?.status).toBe(429);
    const seconds = Number(held?.headers.get('retry-after'));
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(held?.body).toContain(`Try again in ${seconds} second`);
    expect((await attempt(PASSWORD, '203.0.113.2'))?.status).toBe(200);
  });

  it('forgives when the time is over, which refused attempts do not prolong', async () => {
    await guess('203.0.113.1', 5);
    const [key = ''] = await web.redis.keys('limit:operator:*');
    const left = await web.redis.pttl(key);
    await guess('203.0.113.1', 5);
    expect(await web.redis.pttl(key)).toBeLessThanOrEqual(left);
    await web.redis.del(key);
    expect((await attempt(PASSWORD, '203.0.113.1'))?.status).toBe(200);
  });

  it('is not made easier by many addresses, nor by what a client writes itself', async () => {
    const statuses: number[] = [];
    for (let n = 1; n <= 10; n += 1) statuses.push(...(await guess(`spoofed-${n}, 198.51.100.${n}`, 1)));
    expect(statuses).toEqual([...Array(8).fill(401), 429, 429]);
    expect((await guess('spoofed-11, 198.51.100.1', 3)).at(-1)).toBe(429);
  });

  it('is not made easier by a proxy that writes the port behind an address, and the operator stays known', async () => {
    expect((await attempt(PASSWORD, '203.0.113.7:50001'))?.status).toBe(200);
    const statuses: number[] = [];
    for (let n = 1; n <= 4; n += 1) statuses.push(...(await guess(`203.0.113.1:${40_000 + n}`, 1)));
    expect(statuses).toEqual([401, 401, 401, 429]);
    for (let n = 1; n <= 10; n += 1) await guess(`198.51.100.${n}`, 1);
    expect((await attempt(PASSWORD, '203.0.113.7:50002'))?.status).toBe(200);
  });

  it('does not lock out an operator who got in before', async () => {
    expect((await attempt(PASSWORD, '203.0.113.7'))?.status).toBe(200);
    for (let n = 1; n <= 10; n += 1) await guess(`198.51.100.${n}`, 1);
    expect((await attempt(PASSWORD, '203.0.113.8'))?.status).toBe(429);
    expect((await attempt(PASSWORD, '203.0.113.7'))?.status).toBe(200);
  });

  it('counts no success: a page may be looked at as often as one likes', async () => {
    for (let n = 0; n < 12; n += 1) expect((await attempt(PASSWORD, '203.0.113.9'))?.status).toBe(200);
  });

  it('counts no success of a new address for all of them either', async () => {
    const statuses: (number | undefined)[] = [];
    for (let n = 1; n <= 10; n += 1) statuses.push((await attempt(PASSWORD, `203.0.113.${n}`))?.status);
    expect(statuses).toEqual(Array(10).fill(200));
  });

  it('knows an address for a day from when it got in last', async () => {
    await attempt(PASSWORD, '203.0.113.7');
    const left = () => web.redis.ttl('operator-known:203.0.113.7');
    expect(Math.round((await left()) / 3_600)).toBe(24);
    await web.redis.expire('operator-known:203.0.113.7', 3_600);
    await attempt(PASSWORD, '203.0.113.7');
    expect(Math.round((await left()) / 3_600)).toBe(24);
  });

  it('counts the addresses of one IPv6 network as one', async () => {
    const addresses = ['2001:db8:1:2::1', '2001:db8:1:2:ffff::', '2001:0db8:0001:0002:0:0:0:9'];
    for (const address of addresses) expect(await guess(address, 1)).toEqual([401]);
    expect(await guess('2001:db8:1:2::4', 1)).toEqual([429]);
    expect(await guess('2001:db8:1:3::1', 1)).toEqual([401]);
  });

  it('counts an IPv4 address as itself, also as one who listens for IPv6 sees it', async () => {
    expect(await guess('::ffff:203.0.113.1', 4)).toEqual([401, 401, 401, 429]);
    expect(await guess('203.0.113.1', 1)).toEqual([429]);
    expect(await guess('::ffff:203.0.113.2', 1)).toEqual([401]);
  });
});

describe('for machines', () => {
  it('says that it is alive, ready, and what it counts', async () => {
    expect((await web.browser().get('/healthz')).json()).toEqual({ status: 'alive' });
    expect((await web.browser().get('/readyz')).json()).toEqual({
      status: 'ready',
      checks: { database: 'ok' },
    });
    const metrics = await web.browser().get('/metrics');
    expect(metrics.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(metrics.body).toBe('up 1\n');
  });

  it('says when it is not ready', async () => {
    const checks = { redis: 'ECONNREFUSED' };
    const away = await startWeb({ redis: web.redis, readiness: async () => ({ ok: false, checks }) });
    const answer = await away.browser().get('/readyz');
    expect(answer.status).toBe(503);
    expect(answer.json()).toEqual({ status: 'not ready', checks });
  });
});

describe('without Redis', () => {
  it('answers with a clear page soon, and machines as ever', async () => {
    // Like the client of a server that has gone: commands wait for a connection that does not come.
    const redis = new Redis({ host: '127.0.0.1', port: 1, lazyConnect: true, retryStrategy: () => 60_000 });
    redis.on('error', () => {});
    const away = await startWeb({ redis });
    const started = performance.now();
    const page = await away.browser().get('/install', { follow: false });
    expect(page.status).toBe(503);
    expect(page.body).toContain('Not available right now');
    expect(page.headers.get('retry-after')).toBe('5');
    expect(performance.now() - started).toBeLessThan(10_000);
    expect((await away.browser().get('/healthz')).status).toBe(200);
    expect((await away.browser().get('/')).status).toBe(200);
    redis.disconnect();
  });
});
