import { describe, expect, test } from 'vitest';
import { HEADER } from '../../src/contract/headers.ts';
import { at, type Company, START_MS, startFrozen, type TestSandbox } from './support/test-sandbox.ts';

const MINUTE_MS = 60_000;

async function start(spec: object = {}, options: object = {}) {
  const service = await startFrozen(options);
  const company = await service.company(spec);
  return { service, company, token: keyOf(company) };
}

/** Sends a request: limit, remaining, burst limit, burst remaining, and ms from START_MS to the reset. */
async function rate(service: TestSandbox, token: string): Promise<number[]> {
  const { headers } = await service.call('GET', '/me', token);
  const number = (name: string) => Number(headers.get(name) ?? Number.NaN);
  const { limit, remaining, burstLimit, burstRemaining, reset } = HEADER;
  const resetMs = Math.round(number(reset) * 1000) - START_MS;
  return [...[limit, remaining, burstLimit, burstRemaining].map(number), resetMs];
}

const keyOf = (company: Company, place = 0) => at(company.api_tokens, place).token;

const ok = (count: number): number[] => Array(count).fill(200);

describe('Limits: standard rate limit', () => {
  test('Starter has 50 requests a minute, Professional 100, Enterprise 200', async () => {
    const service = await startFrozen();
    for (const [plan, limit] of [
      ['starter', 50],
      ['professional', 100],
      ['enterprise', 200],
    ] as const) {
      const token = keyOf(await service.company({ plan }));
      expect(await rate(service, token)).toEqual([limit, limit - 1, limit / 2, limit / 2, MINUTE_MS]);
    }
  });

  test('The limit is the company’s: its tokens share it, and other companies have theirs', async () => {
    const { service, company, token } = await start();
    await service.statuses(9, '/me', token);
    expect((await rate(service, keyOf(company, 1)))[1]).toBe(40);
    expect((await rate(service, keyOf(await service.company())))[1]).toBe(49);
  });

  test('From the Professional plan on an add-on raises the limit', async () => {
    const { service, token } = await start({ plan: 'professional', addon_rpm: 25 });
    expect((await rate(service, token)).slice(0, 2)).toEqual([125, 124]);
    const refused = await service.control('companies', { name: 'X', plan: 'starter', addon_rpm: 10 });
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('addon_rpm')]);
  });
});

describe('Limits: other rate limits', () => {
  test('Partner applications share 120 a minute per company, beside its own limit', async () => {
    const { service, company, token } = await start();
    const installs = [
      await service.install(company),
      await service.install(company),
      await service.install(company, await service.application()),
      await service.install(await service.company()),
    ];
    const rates: unknown[] = [];
    for (const { access_token } of installs) rates.push((await rate(service, access_token)).slice(0, 2));
    expect(rates).toEqual([119, 118, 117, 119].map((left) => [120, left]));
    expect(await rate(service, token)).toEqual([50, 49, 25, 25, MINUTE_MS]);
  });

  test('The automation platform counts against the company’s own limit', async () => {
    const { service, company, token } = await start();
    const automation = await service.application({ kind: 'automation' });
    const { access_token } = await service.install(company, automation);
    expect((await rate(service, access_token)).slice(0, 2)).toEqual([50, 49]);
    expect((await rate(service, token)).slice(0, 2)).toEqual([50, 48]);
  });
});

describe('Limits: burst allowance', () => {
  test('Once the limit is used up, half of it is left on top, add-ons included', async () => {
    const { service, token } = await start({ plan: 'professional', addon_rpm: 25 });
    expect(await service.statuses(125, '/me', token)).toEqual(ok(125));
    expect(await rate(service, token)).toEqual([125, 0, 62, 61, MINUTE_MS]);
    expect(await service.statuses(62, '/me', token)).toEqual([...ok(61), 429]);
  });

  test('A burst that is used up is full again ten minutes after its first request', async () => {
    const { service, token } = await start();
    await service.statuses(50, '/me', token);
    await service.advance(24_000);
    expect(await service.statuses(26, '/me', token)).toEqual([...ok(25), 429]);
    await service.advance(36_000);
    expect(await service.statuses(51, '/me', token)).toEqual([...ok(50), 429]);
    // The window that is open when the burst comes back has 12 s to go then: the burst is the shorter wait.
    await service.advance(8.6 * MINUTE_MS);
    await service.statuses(50, '/me', token);
    const { body } = await service.call('GET', '/me', token);
    expect(JSON.stringify(body)).toContain(' 48000 milliseconds');
    await service.advance(48_000);
    expect((await rate(service, token)).slice(0, 4)).toEqual([50, 0, 25, 24]);
  });
});

describe('Limits: burst allowance (our choice)', () => {
  test('The partner limit has a burst of half of it', async () => {
    const { service, company } = await start();
    const { access_token } = await service.install(company);
    expect(await rate(service, access_token)).toEqual([120, 119, 60, 60, MINUTE_MS]);
  });
});

describe('Limits: response headers', () => {
  test('x-ratelimit-reset is at most a minute ahead, though the clock is set back', async () => {
    const { service, token } = await start();
    expect((await rate(service, token)).at(-1)).toBe(MINUTE_MS);
    await service.freeze(START_MS - 10 * MINUTE_MS);
    expect(await rate(service, token)).toEqual([50, 49, 25, 25, -9 * MINUTE_MS]);
  });
});

describe('Limits: response headers (our choice)', () => {
  test('A window starts with its first request; the reset names its last millisecond', async () => {
    const { service, token } = await start();
    const rates: number[][] = [];
    for (const ms of [0, MINUTE_MS - 1, 1, 3 * MINUTE_MS + 7]) {
      await service.advance(ms);
      const all = await rate(service, token);
      rates.push([at(all, 1), at(all, 4)]);
    }
    expect(rates).toEqual([
      [49, MINUTE_MS],
      [48, MINUTE_MS],
      [49, 2 * MINUTE_MS],
      [49, 5 * MINUTE_MS + 7],
    ]);
  });

  test('Without a known token the headers show an untouched default limit', async () => {
    const { service } = await start();
    expect(await rate(service, 'unknown')).toEqual([50, 50, 25, 25, MINUTE_MS]);
  });
});

describe('Errors', () => {
  test('Over the limit a request gets 429 with _error, which states the wait in ms', async () => {
    const { service, token } = await start();
    await service.statuses(75, '/me', token);
    await service.advance(12_345);
    const { status, headers, body } = await service.call('GET', '/contacts', token);
    expect([status, headers.get(HEADER.tier)]).toEqual([429, null]);
    expect(body).toEqual({
      _error: {
        status: 429,
        title: 'Too Many Requests',
        message: 'Rate limit exceeded. Please retry in 47655 milliseconds.',
      },
    });
  });

  test('A client that waits as long as retry-after says is let in', async () => {
    const { service, token } = await start({}, { windowMs: 2_500 });
    await service.statuses(75, '/me', token);
    await service.advance(333);
    const { status, headers } = await service.call('GET', '/me', token);
    expect([status, headers.get(HEADER.retryAfter)]).toEqual([429, '3']);
    await service.advance(3_000);
    expect(await service.statuses(1, '/me', token)).toEqual([200]);
  });
});

describe('Errors (our choice)', () => {
  test('401 and 429 count for no limit; every other answer counts, 404 and 422 too', async () => {
    const { service, company, token } = await start();
    const { access_token } = await service.install(company);
    await service.call('GET', '/nothing', access_token);
    await service.call('POST', '/accounts', access_token, { name: 5 });
    expect((await rate(service, access_token))[1]).toBe(117);
    await service.statuses(90, '/me', token);
    expect(await rate(service, token)).toEqual([50, 0, 25, 0, MINUTE_MS]);
    await service.advance(60 * MINUTE_MS);
    const { status, headers } = await service.call('GET', '/me', access_token);
    expect([status, headers.get(HEADER.remaining)]).toEqual([401, '120']);
  });
});
