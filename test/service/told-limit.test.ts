import { expect, test } from 'vitest';
import { startTestClient } from './test-client.ts';

const LIMIT = 50;
const CALLS = 150;

const { newCompany, parts } = await startTestClient();

test.each(['-1', '-40', 'unlimited', ''])(
  'whatever is told to be left of a limit (%j): no more requests than that',
  async (remaining) => {
    const { newClient, fault, journal } = await newCompany();
    const headers = {
      'x-ratelimit-limit': String(LIMIT),
      'x-ratelimit-remaining': remaining,
      'x-ratelimit-reset': String(Date.now() / 1_000 + 55),
    };
    await fault({ headers }, CALLS);
    const client = newClient({ maxWaitMs: 1_000 });
    await client.listTags();
    await Promise.allSettled(Array.from({ length: CALLS }, () => client.listTags()));
    const seen = (await journal()).length;
    expect(seen).toBeGreaterThan(0);
    expect(seen).toBeLessThanOrEqual(LIMIT);
  },
);

test('a limit that is told with its window, 50, 50;w=60, is the limit that the dashboard shows', async () => {
  const { client, company, fault } = await newCompany();
  await fault({ headers: { 'x-ratelimit-limit': '50, 50;w=60', 'x-ratelimit-remaining': '40' } });
  await client.listTags();
  expect(await parts.budget.read(company.id)).toMatchObject({ limit: 50, remaining: 40 });
});
