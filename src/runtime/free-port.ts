import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Where free ports are looked for. Systems give port 0, and each connection that goes out, one above these (Linux from
 * 32768, others from 49152): a port of theirs may be gone again by the time that it is used.
 */
const [FIRST, LAST] = [20_000, 29_999];

const MAX_ATTEMPTS = 100;

/**
 * Finds a TCP port of 127.0.0.1 that is free now, for programs that cannot listen on port 0.
 * Another program may take it before its use: callers that must not fail try again.
 *
 * @param pick chooses the next port to look at
 * @throws Error when none of many was free, or the system lets nobody listen
 */
export async function findFreePort(pick = () => randomInt(FIRST, LAST + 1)): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const port = pick();
    const server = createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if ((code !== 'EADDRINUSE' && code !== 'EACCES') || attempt === MAX_ATTEMPTS) throw error;
      continue;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}
