import * as fc from 'fast-check';
import { test } from 'vitest';
import { check, PROPERTIES } from './model/properties.ts';

/** `npm run properties` runs for a million steps, with other seeds. */
const SEED = 20_310_101;
const LONGEST_MS = 1_200;

test.each(PROPERTIES)('$name', async (property) => {
  const holds = fc.asyncProperty(property.scenarios, async (scenario) => {
    await check(property, scenario);
  });
  await fc.assert(holds, { seed: SEED, numRuns: 100, interruptAfterTimeLimit: LONGEST_MS });
});
