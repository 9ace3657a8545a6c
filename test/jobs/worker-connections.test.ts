import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { QUEUE } from '../../jobs/queues.ts';
import { WorkerConnections } from '../../jobs/worker-connections.ts';
import { createRedis } from '../../src/runtime/redis.ts';
import { redisUrlAt, startRedisServer } from '../support/redis-server.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { testLogger } from '../support/test-logger.ts';
import { waitFor } from '../support/wait-for.ts';

afterEach(() => {
  vi.useRealTimers();
});

test('connections that are closed in order, as by a proxy without room, are told after five seconds, and no more when there is room', async () => {
  const server = await startRedisServer();
  const proxy = await startTcpProxy(server.port);
  const full = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
  await once(full, 'listening');
  const { logger, lines } = testLogger();
  const connections = new WorkerConnections(
    (log, name) => createRedis(redisUrlAt(proxy.port), 'worker', log, name),
    logger,
  );
  const waiting = connections.of(QUEUE.sync).duplicate();
  await waitFor(() => waiting.status === 'ready' && proxy.open === 2);

  vi.useFakeTimers({ toFake: ['performance'] });
  proxy.lead((full.address() as AddressInfo).port);
  proxy.breakOff();
  await waitFor(() => lines.length === 2);
  vi.advanceTimersByTime(4_000);
  expect(connections.troubles()).toEqual([]);
  vi.advanceTimersByTime(2_000);
  expect(connections.troubles()).toEqual([
    expect.stringMatching(/that all workers share cannot be used/),
    expect.stringMatching(/“sync” are waited for cannot be used\. .*maxclients.*: closed\.$/),
  ]);

  proxy.lead(server.port);
  await waitFor(() => connections.troubles().length === 0);
  connections.close();
  waiting.disconnect();
  full.close();
});
