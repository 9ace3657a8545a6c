import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { Redis } from 'ioredis';
import { createLogger } from '../../../../src/runtime/logging.ts';
import { openRedis } from '../../../../src/runtime/private-redis.ts';
import { check, PROPERTIES } from './properties.ts';

/** Scenarios from one seed. */
const BATCH = 20;

const [most = '1000000', first = '1'] = process.argv.slice(2);
for (const argument of [most, first]) {
  if (/^[1-9]\d*$/.test(argument)) continue;
  process.stderr.write(`${argument} is no positive number. Usage: npm run properties -- STEPS SEED\n`);
  process.exit(2);
}
const dir = mkdtempSync(join(tmpdir(), 'partner-app-properties-'));
const lease = await openRedis({ dir, logger: createLogger({ logLevel: 'silent', production: true }) });
const redis = new Redis(lease.url);
const startedAt = performance.now();
let steps = 0;
let runs = 0;
let violations = 0;
let seed = Number(first);
for (; steps < Number(most); seed++) {
  for (const property of PROPERTIES) {
    const holds = fc.asyncProperty(property.scenarios, async (scenario) => {
      steps += (await check(redis, property, scenario)).steps;
      runs++;
    });
    const result = await fc.check(holds, { seed, numRuns: BATCH });
    if (!result.failed) continue;
    violations++;
    process.stdout.write(`${property.name}\n${String(result.errorInstance)}\n\n`);
  }
}
const seconds = Math.round((performance.now() - startedAt) / 1_000);
process.stdout.write(
  `${steps} steps in ${runs} runs, seeds ${first} to ${seed - 1}, ${seconds} s: ${violations} violations\n`,
);
process.exitCode = violations === 0 ? 0 : 1;
redis.disconnect();
await lease.release();
rmSync(dir, { recursive: true, force: true });
