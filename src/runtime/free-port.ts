import { createServer } from 'node:net';

/**
 * Finds a TCP port of 127.0.0.1 that is free now, for programs that cannot listen on port 0.
 * Somebody else may take it before its use: callers try again.
 */
export async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('No free port was found.');
  return address.port;
}
