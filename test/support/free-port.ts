import { randomInt } from 'node:crypto';
import { findFreePort as findAmong } from '../../src/runtime/free-port.ts';

/** Below where the app looks for free ports, whose processes run beside the tests. */
const FIRST = 10_000;

/** Test files run beside each other, as many at once as this at most; each of those has this many ports. */
const PORTS = 100;

const first = FIRST + PORTS * (Number(process.env.VITEST_POOL_ID ?? 0) % PORTS);
let next = randomInt(PORTS);

/**
 * Finds a free TCP port of 127.0.0.1 that no other test file which runs now looks at, and this one not soon again:
 * it is still free when a test uses it, however long that takes.
 */
export function findFreePort(): Promise<number> {
  return findAmong(() => first + (next++ % PORTS));
}
