import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { findFreePort } from '../../src/runtime/free-port.ts';

/** Listens at a port of 127.0.0.1; answers with it, and how to end. */
async function take(port: number) {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, end: () => server.close() };
}

test('a free port can be listened at, and is none that the system gives to whoever comes next', async () => {
  const port = await findFreePort();
  const { end } = await take(port);
  end();
  // What it gives to connections that go out begins at 32768, or above.
  expect(port).toBeLessThan(32_768);
});

test('a port that is in use is passed over', async () => {
  const taken = await take(0);
  const free = await findFreePort();
  const picks = [taken.port, taken.port, free];
  expect(await findFreePort(() => picks.shift() ?? 0)).toBe(free);
  taken.end();
});

test('where all are in use, it says so', async () => {
  const taken = await take(0);
  await expect(findFreePort(() => taken.port)).rejects.toThrow('EADDRINUSE');
  taken.end();
});
