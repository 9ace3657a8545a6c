import { describe, expect, test } from 'vitest';
import { HEADER } from '../../src/contract/headers.ts';
import { at, START_MS, startCompany } from './support/test-sandbox.ts';

const MINUTE_MS = 60_000;

async function start(spec: object = {}) {
  const { service, company, token } = await startCompany(spec);
  /** Sends a request: limit, remaining, burst limit, burst remaining, and ms from START_MS to the reset. */
  const rate = async (by = token) => {
    const { headers } = await service.call('GET', '/me', by);
    const number = (name: string) => Number(headers.get(name) ?? Number.NaN);
    const { limit, remaining, burstLimit, burstRemaining, reset } = HEADER;
    const resetMs = Math.round(number(reset) * 1000) - START_MS;
    return [...[limit, remaining, burstLimit, burstRemaining].map(number), resetMs];
  };
  const left = async (by = token) => (await rate(by))[1];
  const send = (count: number) => service.statuses(count, '/me', token);
  return { service, company, token, rate, left, send };
}

const ok = (count: number): number[] => Array(count).fill(200);

describe('Limits: standard rate limit', () => {
  test('Starter has 50 requests a minute, Professional 100, Enterprise 200', async () => {
    for (const [plan, limit] of Object.entries({ starter: 50, professional: 100, enterprise: 200 })) {
      const { rate } = await start({ plan });
      expect(await rate()).toEqual([limit, limit - 1, limit / 2, limit / 2, MINUTE_MS]);
    }
  });

  test('From Professional on an add-on raises the limit, and with it the burst', async () => {
    const { service, rate, send } = await start({ plan: 'professional', addon_rpm: 25 });
    expect(await send(125)).toEqual(ok(125));
    expect(await rate()).toEqual([125, 0, 62, 61, MINUTE_MS]);
    expect(await send(62)).toEqual([...ok(61), 429]);
    expect(() => service.company({ addon_rpm: 10 })).toThrow('addon_rpm: needs the professional plan');
  });

  test('The limit is the company’s: its tokens share it, and other companies have theirs', async () => {
    const { service, company, left } = await start();
    const tokens = [...company.api_tokens, at(service.company().api_tokens, 0)];
    const counts = [];
    for (const { token } of tokens) counts.push(await left(token));
    expect(counts).toEqual([49, 48, 49]);
  });
});

describe('Limits: standard rate limit (our choice)', () => {
  test('A window starts with its first request; the reset names its last millisecond', async () => {
    const { service, rate } = await start();
    const rates: unknown[] = [];
    for (const ms of [0, MINUTE_MS - 1, 1, 3 * MINUTE_MS + 7]) {
      service.advance(ms);
      rates.push((await rate()).filter((_, place) => place === 1 || place === 4).join(' +'));
    }
    expect(rates).toEqual(['49 +60000', '48 +60000', '49 +120000', '49 +300007']);
  });

  test('401 and 429 count for no limit; every other answer counts, 404 and 422 too', async () => {
    const { service, company, rate, left, send } = await start();
    const { access_token } = service.install(company);
    await service.call('GET', '/nothing', access_token);
    await service.call('POST', '/accounts', access_token, { name: 5 });
    expect(await left(access_token)).toBe(117);
    await send(90);
    expect(await rate()).toEqual([50, 0, 25, 0, MINUTE_MS]);
    service.advance(60 * MINUTE_MS);
    expect((await rate(access_token)).slice(0, 2)).toEqual([120, 120]);
    expect((await rate()).slice(0, 4)).toEqual([50, 49, 25, 25]);
  });
});

describe('Limits: other rate limits', () => {
  test('Partner applications share 120 a minute per company, beside its own limit', async () => {
    const { service, company, left } = await start();
    const [other, elsewhere] = [service.application(), service.company()];
    const mine = await left(service.install(company).access_token);
    const others = await left(service.install(company, other).access_token);
    const apart = await left(service.install(elsewhere).access_token);
    expect([mine, others, apart, await left()]).toEqual([119, 118, 119, 49]);
  });

  test('The automation platform counts against the company’s own limit', async () => {
    const { service, company, left } = await start();
    const { access_token } = service.install(company, service.application({ kind: 'automation' }));
    expect([await left(access_token), await left()]).toEqual([49, 48]);
  });
});

describe('Limits: burst allowance', () => {
  test('Half of the limit is left on top, and full again ten minutes after its first use', async () => {
    const { service, token, rate, send } = await start();
    await send(50);
    service.advance(24_000);
    expect(await send(26)).toEqual([...ok(25), 429]);
    service.advance(36_000);
    expect(await send(51)).toEqual([...ok(50), 429]);
    // The window that is open when the burst comes back has 12 s to go then: the burst is the shorter wait.
    service.advance(8.6 * MINUTE_MS);
    await send(50);
    const { body } = await service.call('GET', '/me', token);
    expect(JSON.stringify(body)).toContain(' 48000 milliseconds');
    service.advance(48_000);
    expect((await rate()).slice(0, 4)).toEqual([50, 0, 25, 24]);
  });
});

describe('Limits: burst allowance (our choice)', () => {
  test('The partner limit has a burst of half of it', async () => {
    const { service, company, rate } = await start();
    expect(await rate(service.install(company).access_token)).toEqual([120, 119, 60, 60, MINUTE_MS]);
  });
});

describe('Limits: response headers', () => {
  test('x-ratelimit-reset is at most a minute ahead, though the clock is set back', async () => {
    const { service, rate } = await start();
    expect((await rate()).at(-1)).toBe(MINUTE_MS);
    service.freeze(START_MS - 10 * MINUTE_MS);
    expect(await rate()).toEqual([50, 49, 25, 25, -9 * MINUTE_MS]);
  });
});

describe('Errors', () => {
  test('Over the limit: 429 with _error, the wait in ms, and retry-after, which suffices', async () => {
    const { service, token, send } = await start();
    await send(75);
    service.advance(12_345);
    const { status, headers, body } = await service.call('GET', '/contacts', token);
    expect([status, headers.get(HEADER.retryAfter), headers.get(HEADER.tier)]).toEqual([429, '48', null]);
    const message = 'Rate limit exceeded. Please retry in 47655 milliseconds.';
    expect(body).toEqual({ _error: { status: 429, title: 'Too Many Requests', message } });
    service.advance(48_000);
    expect(await send(1)).toEqual([200]);
  });
});
