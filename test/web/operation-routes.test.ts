import { Redis } from 'ioredis';
import { beforeAll, describe, expect, it } from 'vitest';
import { type StartedWeb, startWeb } from './start-web.ts';
import { instanceStatus, NOW, resourceStatus } from './status-fixtures.ts';

const overview = async () => ({
  instances: [
    instanceStatus({
      name: '<i>Odd</i>',
      resources: { contacts: resourceStatus({ state: 'failed', error: 'It broke.' }) },
    }),
  ],
  queues: [{ name: 'sync', counts: { waiting: 3, delayed: 1_200 } }],
});

function basic(password: string): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(`anyone:${password}`).toString('base64')}` };
}

let web: StartedWeb;
let time = NOW;
beforeAll(async () => {
  web = await startWeb({ operations: { password: 'correct: hörse', overview }, now: () => time });
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
    const page = await web.browser().get('/ops', { headers: basic('correct: hörse') });
    expect(page.status).toBe(200);
    expect(page.body).toContain('&lt;i&gt;Odd&lt;/i&gt;');
    expect(page.body).toContain('It broke.');
    expect(page.body).toContain('waiting 3, delayed 1,200');
  });

  it('makes a guesser wait, and forgives after a minute', async () => {
    const attempt = async (password: string) =>
      (await web.browser().get('/ops', { headers: basic(password) })).status;
    for (let tries = 0; tries < 10; tries += 1) expect(await attempt(`guess ${tries}`)).toBe(401);
    expect(await attempt('correct: hörse')).toBe(429);
    time += 61_000;
    expect(await attempt('correct: hörse')).toBe(200);
  });

  it.each(['Basic', 'Basic !!', 'Basic bm9jb2xvbg==', 'Bearer x', 'Basic Og=='])(
    'does not take %s',
    async (authorization) => {
      expect((await web.browser().get('/ops', { headers: { authorization } })).status).toBe(401);
    },
  );
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
