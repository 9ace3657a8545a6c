import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { afterAll } from 'vitest';
import { startTestRedis } from './test-redis.ts';

/** Starts a Redis that says of itself that it is older than BullMQ wants it; it ends when the test file is through. */
export async function startOldRedis(): Promise<string> {
  const url = new URL((await startTestRedis()).url);
  const { port } = url;
  const server = createServer((client) => {
    const target = connect(Number(port), url.hostname);
    client.pipe(target);
    target.on('data', (answer) => {
      const old = (told: string) => 'redis_version:4.0.0'.padEnd(told.length);
      const said = answer.toString('latin1').replace(/redis_version:\S+/g, old);
      client.write(Buffer.from(said, 'latin1'));
    });
    for (const end of [client, target]) end.on('error', () => undefined);
    client.on('close', () => target.destroy());
    target.on('close', () => client.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterAll(() => void server.close());
  url.port = String((server.address() as AddressInfo).port);
  return url.href;
}
