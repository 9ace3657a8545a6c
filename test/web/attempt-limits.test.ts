import { beforeEach, describe, expect, it } from 'vitest';
import { install, type StartedWeb, startWeb } from './start-web.ts';

describe('the addresses that anybody may try', () => {
  const LIMIT = 6;
  let limited: StartedWeb;
  beforeEach(async () => {
    const redis = limited ? { redis: limited.redis } : {};
    limited = await startWeb({ ...redis, limits: { installs: LIMIT }, proxyHops: 1 });
    await limited.redis.flushall();
  });

  const from = (address: string) => ({ follow: false, headers: { 'x-forwarded-for': address } });

  it.each(['/install', '/oauth/callback?state=guess&code=guess'])(
    'are limited by address: %s',
    async (path) => {
      const statuses: number[] = [];
      for (let n = 0; n < LIMIT + 2; n += 1) {
        statuses.push((await limited.browser().get(path, from(`spoofed-${n}, 203.0.113.1`))).status);
      }
      expect(statuses.filter((status) => status === 429)).toHaveLength(2);
      expect(statuses.lastIndexOf(429)).toBe(LIMIT + 1);
      const refused = await limited.browser().get('/install', from('203.0.113.1'));
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(refused.body).toMatch(/Try again in \d+ second/);
      expect((await limited.browser().get('/install', from('203.0.113.2'))).status).toBe(302);
      expect((await limited.browser().get('/', from('203.0.113.1'))).status).toBe(200);
    },
  );

  it.each([
    ['203.0.113.1', (port: number) => `203.0.113.1:${port}`],
    ['2001:db8:0:0', (port: number) => `[2001:db8::1]:${port}`],
    ['2001:db8:0:0', () => '[2001:db8::1]'],
  ])('count for %s whatever port a proxy writes behind it', async (counted, write) => {
    for (let n = 0; n < 3; n += 1) await limited.browser().get('/install', from(write(40_000 + n)));
    expect(await limited.redis.keys('limit:install:*')).toEqual([`limit:install:${counted}`]);
    expect(await limited.redis.get(`limit:install:${counted}`)).toBe('3');
  });

  it('do not hold up who installs one company after the other', async () => {
    const browser = limited.browser();
    for (let n = 0; n < LIMIT * 2; n += 1) {
      expect((await install(browser, `ins_${n}`)).url.pathname).toBe(`/instances/ins_${n}`);
    }
    const [key = ''] = await limited.redis.keys('limit:install:*');
    expect(await limited.redis.get(key)).toBe('0');
  });

  it.each([
    ['an image', { 'sec-fetch-dest': 'image' }],
    ['a frame', { 'sec-fetch-dest': 'iframe' }],
    ['what is loaded ahead', { 'sec-fetch-dest': 'document', 'sec-purpose': 'prefetch' }],
  ])('are not there for %s of a page, which uses up no try', async (_what, headers) => {
    for (const path of ['/install', '/oauth/callback?state=guess&code=guess']) {
      const answer = await limited.browser().get(path, { follow: false, headers });
      expect(answer.status).toBe(403);
      expect(answer.body).toContain('Open the app’s own page');
    }
    expect(await limited.redis.keys('limit:install:*')).toEqual([]);
    const clicked = { 'sec-fetch-dest': 'document', 'sec-fetch-site': 'cross-site' };
    expect((await limited.browser().get('/install', { follow: false, headers: clicked })).status).toBe(302);
  });

  it('count what fails, and a reload pays for nobody else', async () => {
    const browser = limited.browser();
    await install(browser);
    const started = await browser.get('/install', { follow: false });
    const state = started.location?.searchParams.get('state');
    await browser.get(`/oauth/callback?state=${state}&code=ins_2`);
    for (let n = 1; n < LIMIT; n += 1) await browser.get('/install', { follow: false });
    for (let n = 0; n < 3; n += 1) {
      expect((await browser.get(`/oauth/callback?state=${state}&code=ins_2`)).status).toBe(200);
    }
    expect((await browser.get('/install', { follow: false })).status).toBe(302);
    expect((await browser.get('/install', { follow: false })).status).toBe(429);
    expect((await browser.get(`/oauth/callback?state=${state}&code=ins_2`)).status).toBe(429);
  });

  it.each([
    [0, ['127.0.0.1']],
    [1, ['198.51.100.1', '198.51.100.2']],
    [2, ['203.0.113.1', '203.0.113.2']],
  ])('believe %i proxies and no more', async (proxyHops, addresses) => {
    const { redis } = limited;
    const web = await startWeb({ redis, limits: { installs: 1 }, proxyHops });
    // What stands leftmost a client may write; the last two are those of proxies that take part in this.
    for (const forwarded of [
      'a.invalid, 203.0.113.1, 198.51.100.1',
      'b.invalid, 203.0.113.2, 198.51.100.1',
    ]) {
      await web.browser().get('/install', from(forwarded));
      await web.browser().get('/install', from(forwarded.replace(/198.*/, '198.51.100.2')));
    }
    const keys = await redis.keys('limit:install:*');
    expect(keys.toSorted()).toEqual(addresses.map((address) => `limit:install:${address}`));
  });
});
