import { expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import type { RouteContract } from '../../src/contract/api/route.ts';
import { GUARDS, guardLimit } from '../../src/contract/guards.ts';
import { HEADER } from '../../src/contract/headers.ts';
import { PLAN_LIMITS } from '../../src/contract/limits.ts';
import { at, startFrozen, type TestSandbox } from '../sandbox/support/test-sandbox.ts';

// Guards count requests before anyone looks for what they are about: ids that nobody has are good enough here.

async function start() {
  const service = await startFrozen();
  const company = await service.company({ plan: 'enterprise' });
  return { service, company, token: at(company.api_tokens, 0).token };
}

function ask(service: TestSandbox, token: string, { method, path }: RouteContract, id = 'x') {
  return service.call(method, path.replace(/:\w+/g, id), token, method === 'GET' ? undefined : {});
}

const GUARDED = ROUTES.flatMap(([operation, route]) =>
  route.guard === undefined ? [] : [[operation, { ...route, guard: route.guard }] as const],
);

test.each(GUARDED)(
  '%s is refused by its guard while there is plenty of the rate limit left',
  async (_, route) => {
    const { service, token } = await start();
    const rule = GUARDS[route.guard.guard];
    const limit = guardLimit(rule, PLAN_LIMITS.enterprise);
    for (let request = 0; request < limit; request++) {
      expect((await ask(service, token, route)).status).not.toBe(429);
    }
    const { status, headers, body } = await ask(service, token, route);
    expect([status, headers.get(HEADER.tier)]).toEqual([429, rule.tier]);
    expect(headers.get(HEADER.remaining)).toBe(String(PLAN_LIMITS.enterprise - limit));
    expect(headers.get(HEADER.retryAfter)).toBe(String(rule.windowMs / 1000));
    expect(JSON.stringify(body)).toContain(`${rule.windowMs} milliseconds`);
    await service.advance(rule.windowMs - 1);
    expect((await ask(service, token, route)).status).toBe(429);
    await service.advance(1);
    expect((await ask(service, token, route)).status).not.toBe(429);
  },
);

test('x-service-tier stands on the answers of guarded routes, and on no other', async () => {
  const { service, token } = await start();
  for (const [operation, route] of ROUTES) {
    const { headers } = await ask(service, token, route);
    const tier = route.guard === undefined ? null : GUARDS[route.guard.guard].tier;
    expect([operation, headers.get(HEADER.tier)]).toEqual([operation, tier]);
  }
});

test('what a guard refuses does not count for the rate limit', async () => {
  const { service, company, token } = await start();
  const remaining = async () =>
    Number((await service.call('GET', `/tags/${at(company.tags, 0)}`, token)).headers.get(HEADER.remaining));
  const report = () => service.call('POST', '/analytics/reports', token, {});
  expect((await report()).status).toBe(201);
  const before = await remaining();
  for (const _ of [1, 2, 3]) expect((await report()).status).toBe(429);
  expect(await remaining()).toBe(before - 1);
});

test('what the rate limit refuses counts for no guard, and names none', async () => {
  const service = await startFrozen();
  const company = await service.company({ plan: 'starter' });
  const token = at(company.api_tokens, 0).token;
  await service.statuses(75, '/me', token);
  const refused = await service.call('POST', '/analytics/reports', token, {});
  expect([refused.status, refused.headers.get(HEADER.tier)]).toEqual([429, null]);
  await service.advance(60_000);
  expect((await service.call('POST', '/analytics/reports', token, {})).status).toBe(201);
});

test('a full bucket closes no other one', async () => {
  const { service, token } = await start();
  for (const [, route] of GUARDED) {
    if (route.guard.by.some((part) => part.startsWith(':'))) {
      const limit = guardLimit(GUARDS[route.guard.guard], PLAN_LIMITS.enterprise);
      for (let request = 0; request < limit; request++) await ask(service, token, route, 'full');
      expect((await ask(service, token, route, 'full')).status).toBe(429);
      expect((await ask(service, token, route, 'other')).status).not.toBe(429);
      await service.advance(10 * 60_000);
    }
  }
});
