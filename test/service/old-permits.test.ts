import { describe, expect, test } from 'vitest';
import type { ServiceClient } from '../../src/service/calls/call-types.ts';
import { REQUEST_TIMEOUT_MS } from '../../src/service/http.ts';
import { MOST_PERMITS } from '../../src/service/transport.ts';
import { startTestClient } from './test-client.ts';

const ROUTE = '/tags';

/** More than the tries of a call that fails. */
const TIMES = 6;

/** A reading; a writing that is not repeated; one that a guard counts. */
const CALLS: Record<string, (client: ServiceClient) => Promise<unknown>> = {
  'a GET': (client) => client.listTags(),
  'a POST': (client) => client.createAccount({ name: 'New' }),
  'a POST under a guard': (client) => client.createLink({ external_url: 'https://shop.example/1' }),
};

const { sandbox, parts, standingStill, flightOf, newCompany } = await startTestClient();

describe('a permit that is so old that its lease may end before its request does', () => {
  test.each(Object.entries(CALLS))(
    'sends nothing: %s asks for another one, as often as it takes',
    async (_what, call) => {
      const { company, newClient, journal } = await newCompany();
      const budget = standingStill();
      budget.growsOld = (place) => place <= TIMES;
      await call(newClient({ budget }));
      expect(budget.old.size).toBe(TIMES);
      expect(budget.granted.size).toBe(TIMES + 1);
      expect((await journal()).map(({ status }) => status < 300)).toEqual([true]);
      expect(await flightOf(company)).toEqual({});
    },
  );

  test('is trouble when it comes to that again and again', async () => {
    const { company, newClient, journal } = await newCompany();
    const budget = standingStill();
    budget.growsOld = () => true;
    await expect(newClient({ budget }).listTags()).rejects.toMatchObject({ remedy: 'wait', unsent: true });
    expect(budget.granted.size).toBeLessThan(MOST_PERMITS + TIMES);
    expect(await journal()).toEqual([]);
    expect(await flightOf(company)).toEqual({});
  });

  test('is given back, and its request counts nowhere', async () => {
    const { company, client, journal } = await newCompany();
    await client.listTags();
    const { access_token } = await sandbox.install(company);
    const before = await parts.budget.read(company.id);
    const { permit } = await parts.budget.acquire(company.id, ROUTE);
    if (permit === undefined) expect.unreachable();
    const request = { method: 'GET', url: new URL(`${parts.apiUrl}${ROUTE}`) } as const;
    const old = { ...permit, goodUntil: performance.now() - 1 };
    const sent = parts.transport.send(request, old, access_token);
    await expect(sent).rejects.toMatchObject({ remedy: 'wait', unsent: true, permitOver: true });
    expect((await journal()).length).toBe(1);
    expect(await flightOf(company)).toEqual({});
    expect(await parts.budget.read(company.id)).toEqual(before);
  });

  test('is told by the clock: whatever begins in time is over when the lease is', async () => {
    const { company } = await newCompany();
    const { permit } = await parts.budget.acquire(company.id, ROUTE);
    if (permit === undefined) expect.unreachable();
    const goodForMs = permit.goodUntil - performance.now();
    const { [permit.id]: leaseMs = 0 } = await flightOf(company);
    expect(goodForMs).toBeGreaterThan(0);
    expect(goodForMs + REQUEST_TIMEOUT_MS).toBeLessThanOrEqual(leaseMs);
  });
});
