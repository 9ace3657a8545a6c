import { expect, test } from 'vitest';
import { spawnEntry } from '../support/spawn-entry.ts';

test('npm run demo installs, copies and compares a company, and exits with 0', async () => {
  const demo = spawnEntry('src/demo.ts');
  expect(await demo.exited, demo.output()).toEqual({ code: 0, signal: null });
  expect(demo.output()).toMatch(/Installing .+ through the service's consent page/);
  expect(demo.output()).toMatch(/records\s+pages\s+requests\s+429s\s+tokens renewed/);
  expect(demo.output()).toMatch(/\d{4} records in \d+\.\d s: nothing is missing, nothing is double\./);
});
