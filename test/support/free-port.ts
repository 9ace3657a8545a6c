import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below where a private Redis looks for its port: the app's processes run beside the tests. */
const FIRST = 10_000;

/** Test files run beside each other, as many at once as this at most; each of those has this many ports. */
const PORTS = 100;

const first = FIRST + PORTS * (Number(process.env.VITEST_POOL_ID ?? 0) % PORTS);
let next = randomInt(PORTS);

/**
 * Finds a free TCP port of 127.0.0.1 that no other test file which runs now looks at, and this one not soon again:
 * it is still free when a test uses it, however long that takes.
 */
export async function findFreePort(): Promise<number> {
  for (let look = 0; look < PORTS; look++) {
    const port = first + (next++ % PORTS);
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
  throw new Error(`None of the ports from ${first} on is free.`);
}
