import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { check, PROPERTIES } from './model/properties.ts';

/** Steps of all properties together. `npm run properties` runs a million, with other seeds. */
const SEED = 20_310_101;
const STEPS = 10_000 / PROPERTIES.length;

test.each(PROPERTIES)('$name', async (property) => {
  let steps = 0;
  for (let batch = 0; steps < STEPS; batch++) {
    const holds = fc.asyncProperty(property.scenarios, async (scenario) => {
      steps += (await check(property, scenario)).steps;
    });
    await fc.assert(holds, { seed: SEED + batch, numRuns: 5 });
  }
  expect(steps).toBeGreaterThanOrEqual(STEPS);
});
