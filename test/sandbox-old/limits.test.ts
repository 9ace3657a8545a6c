import { expect, test } from 'vitest';
import type { ErrorBody } from '../../src/contract/errors.ts';
import { HEADER } from '../../src/contract/headers.ts';
import { at, START_MS, startFrozen } from '../sandbox/support/test-sandbox.ts';

const MINUTE_MS = 60_000;

function header(response: Response, name: string): number {
  return Number(response.headers.get(name) ?? Number.NaN);
}

function ok(count: number): number[] {
  return Array.from({ length: count }, () => 200);
}

test.each([
  ['starter', 0, 50],
  ['professional', 0, 100],
  ['enterprise', 0, 200],
  ['professional', 25, 125],
])('an API token has the limit of the plan: %s + %i', async (plan, addon_rpm, limit) => {
  const service = await startFrozen();
  const { api_tokens } = await service.company({ plan, addon_rpm });
  const response = await service.api('/me', at(api_tokens, 0).token);
  expect(header(response, HEADER.limit)).toBe(limit);
  expect(header(response, HEADER.remaining)).toBe(limit - 1);
  expect(header(response, HEADER.burstLimit)).toBe(Math.floor(limit / 2));
  expect(header(response, HEADER.burstRemaining)).toBe(Math.floor(limit / 2));
  expect(header(response, HEADER.reset)).toBe(START_MS / 1000 + 60);
});

test('a starter company cannot buy an increase', async () => {
  const service = await startFrozen();
  const response = await service.control('companies', { name: 'X', plan: 'starter', addon_rpm: 10 });
  expect(response.status).toBe(400);
});

test('both API tokens of a company share its limit', async () => {
  const service = await startFrozen();
  const { api_tokens } = await service.company();
  await service.api('/me', at(api_tokens, 0).token);
  expect(header(await service.api('/me', at(api_tokens, 1).token), HEADER.remaining)).toBe(48);
});

test('partner applications share 120 a company, beside its own limit', async () => {
  const service = await startFrozen();
  const company = await service.company();
  const other = await service.company();
  const second = await service.application();
  const [mine, mineAgain, theirs, elsewhere] = [
    await service.install(company),
    await service.install(company),
    await service.install(company, second),
    await service.install(other),
  ];
  const remaining = async (token: string) => {
    const response = await service.api('/me', token);
    return [HEADER.limit, HEADER.remaining, HEADER.burstLimit].map((name) => header(response, name));
  };
  expect(await remaining(mine.access_token)).toEqual([120, 119, 60]);
  expect(await remaining(mineAgain.access_token)).toEqual([120, 118, 60]);
  expect(await remaining(theirs.access_token)).toEqual([120, 117, 60]);
  expect(await remaining(elsewhere.access_token)).toEqual([120, 119, 60]);
  expect(await remaining(at(company.api_tokens, 0).token)).toEqual([50, 49, 25]);
});

test('an automation application counts against the company’s own limit', async () => {
  const service = await startFrozen();
  const company = await service.company();
  const { access_token } = await service.install(company, await service.application({ kind: 'automation' }));
  const response = await service.api('/me', access_token);
  expect(header(response, HEADER.limit)).toBe(50);
  expect(header(await service.api('/me', at(company.api_tokens, 0).token), HEADER.remaining)).toBe(48);
});

test('after limit and burst comes 429, which states the wait and consumes nothing', async () => {
  const service = await startFrozen();
  const { access_token } = await service.install(await service.company());
  expect(await service.statuses(120, '/me', access_token)).toEqual(ok(120));
  const burst = await service.api('/me', access_token);
  expect(header(burst, HEADER.remaining)).toBe(0);
  expect(header(burst, HEADER.burstRemaining)).toBe(59);
  expect(await service.statuses(59, '/me', access_token)).toEqual(ok(59));
  await service.advance(12_345);
  for (let times = 0; times < 3; times++) {
    const refused = await service.api('/contacts', access_token);
    expect(refused.status).toBe(429);
    expect((await refused.json()) as ErrorBody).toEqual({
      _error: {
        status: 429,
        title: 'Too Many Requests',
        message: 'Rate limit exceeded. Please retry in 47655 milliseconds.',
      },
    });
    expect(header(refused, HEADER.retryAfter)).toBe(48);
    expect(header(refused, HEADER.remaining)).toBe(0);
    expect(header(refused, HEADER.burstRemaining)).toBe(0);
    expect(header(refused, HEADER.reset)).toBe(START_MS / 1000 + 60);
    expect(refused.headers.get(HEADER.tier)).toBeNull();
  }
  await service.advance(47_655);
  const next = await service.api('/me', access_token);
  expect(next.status).toBe(200);
  expect(header(next, HEADER.remaining)).toBe(119);
  expect(header(next, HEADER.reset)).toBe(START_MS / 1000 + 120);
});

test('a window starts with its first request, and ends to the millisecond', async () => {
  const service = await startFrozen();
  const { api_tokens } = await service.company();
  const { token } = at(api_tokens, 0);
  await service.api('/me', token);
  await service.advance(MINUTE_MS - 1);
  expect(header(await service.api('/me', token), HEADER.remaining)).toBe(48);
  await service.advance(1);
  const next = await service.api('/me', token);
  expect(header(next, HEADER.remaining)).toBe(49);
  await service.advance(3 * MINUTE_MS + 7);
  const later = await service.api('/me', token);
  expect(header(later, HEADER.reset)).toBe((START_MS + 5 * MINUTE_MS + 7) / 1000);
});

test('the burst is full again ten windows after its first request', async () => {
  const service = await startFrozen({ windowMs: 1_000 });
  const { api_tokens } = await service.company();
  const { token } = at(api_tokens, 0);
  await service.statuses(50, '/me', token);
  await service.advance(400);
  expect(await service.statuses(26, '/me', token)).toEqual([...ok(25), 429]);
  await service.advance(600);
  expect(await service.statuses(51, '/me', token)).toEqual([...ok(50), 429]);
  // The window that is open when the burst comes back still has 200 ms to go: the burst's end is the shorter wait.
  await service.advance(8_600);
  await service.statuses(50, '/me', token);
  const refused = await service.api('/me', token);
  expect(((await refused.json()) as ErrorBody)._error.message).toContain(' 800 milliseconds');
  expect(header(refused, HEADER.retryAfter)).toBe(1);
  await service.advance(800);
  const burst = await service.api('/me', token);
  expect([burst.status, header(burst, HEADER.burstRemaining)]).toEqual([200, 24]);
});

test('a request that waits as long as it is told to is allowed', async () => {
  const service = await startFrozen({ windowMs: 2_500 });
  const { api_tokens } = await service.company();
  const { token } = at(api_tokens, 0);
  await service.statuses(75, '/me', token);
  await service.advance(333);
  const refused = await service.api('/me', token);
  expect(refused.status).toBe(429);
  await service.advance(header(refused, HEADER.retryAfter) * 1000);
  expect((await service.api('/me', token)).status).toBe(200);
});

test('a clock that is set back leaves no reset further ahead than a window', async () => {
  const service = await startFrozen();
  const { api_tokens } = await service.company();
  await service.api('/me', at(api_tokens, 0).token);
  await service.freeze(START_MS - 10 * MINUTE_MS);
  const response = await service.api('/me', at(api_tokens, 0).token);
  expect(header(response, HEADER.reset)).toBe(START_MS / 1000 - 540);
});

test('the state tells where every used limit stands', async () => {
  const service = await startFrozen();
  const company = await service.company();
  await service.api('/me', at(company.api_tokens, 0).token);
  expect((await service.state()).limits).toEqual([
    {
      company_id: company.id,
      scope: 'plan',
      limit: 50,
      remaining: 49,
      reset_at: START_MS + MINUTE_MS,
      burst_limit: 25,
      burst_remaining: 25,
      burst_reset_at: null,
    },
  ]);
});
