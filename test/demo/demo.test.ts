import { expect, test } from 'vitest';
import { spawnEntry } from '../support/spawn-entry.ts';

test('npm run demo installs, copies, compares, brings a change and a reply, and exits with 0', async () => {
  const demo = spawnEntry('src/demo.ts');
  expect(await demo.exited, demo.output()).toEqual({ code: 0, signal: null });
  expect(demo.output()).toMatch(/Installing .+ through the service's consent page/);
  expect(demo.output()).toMatch(/records\s+pages\s+requests\s+429s\s+tokens renewed/);
  expect(demo.output()).toMatch(/\d{4} records in \d+\.\d s: nothing is missing, nothing is double\./);
  expect(demo.output()).toMatch(/The handler had it \d+\.\d s later, as a check found it\./);
  expect(demo.output()).toMatch(/Its reply went out by the outbox, once, \d+\.\d s after the change\./);
});
