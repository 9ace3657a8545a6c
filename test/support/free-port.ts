import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Test files run side by side, and so do whole test runs: each file looks for ports in a range of its own. They lie below
 * the ports of outgoing connections.
 */
const range = 10_000 + 100 * ((Number(process.env.VITEST_POOL_ID ?? 0) + 37 * process.ppid) % 100);
let looked = Math.floor(Math.random() * 100);

/** Finds a TCP port of 127.0.0.1 that is free, and will be when a test uses it. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = range + (looked++ % 100);
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
}
