import * as fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { startTestRedis } from '../../support/test-redis.ts';
import { check, PROPERTIES } from './model/properties.ts';

/** Steps of all properties together. `npm run properties` runs a million, with other seeds. */
const SEED = 20_310_101;
const STEPS = 10_000 / PROPERTIES.length;

const redis = new Redis((await startTestRedis()).url);
afterAll(() => redis.disconnect());

test.each(PROPERTIES)('$name', async (property) => {
  let steps = 0;
  for (let batch = 0; steps < STEPS; batch++) {
    const holds = fc.asyncProperty(property.scenarios, async (scenario) => {
      steps += (await check(redis, property, scenario)).steps;
    });
    await fc.assert(holds, { seed: SEED + batch, numRuns: 5 });
  }
  expect(steps).toBeGreaterThanOrEqual(STEPS);
});
