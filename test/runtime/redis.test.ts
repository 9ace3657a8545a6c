import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished, vi } from 'vitest';
import { checkRedis, createRedis } from '../../src/runtime/redis.ts';
import { findFreePort } from '../support/free-port.ts';
import { isRealRedis, redisUrlAt, startRedisServer } from '../support/redis-server.ts';
import { testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';

const { url } = await startTestRedis();

/** A way to Redis that can be cut. */
async function openGate(
  port = 0,
  to = url,
): Promise<{ url: string; port: number; cut: () => Promise<void> }> {
  const target = new URL(to);
  const sockets = new Set<Socket>();
  const server = createServer((inward) => {
    const outward = connect(Number(target.port), target.hostname);
    inward.pipe(outward).pipe(inward);
    for (const socket of [inward, outward]) {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    }
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const through = new URL(url);
  through.port = String(address.port);
  const cut = async (): Promise<void> => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return { url: through.href, port: address.port, cut };
}

it('logs an outage once, comes back by itself, and says so', async () => {
  const gate = await openGate();
  const { logger, lines, text } = testLogger();
  const redis = createRedis(gate.url, 'general', logger);
  let attempts = 0;
  redis.on('reconnecting', () => {
    attempts += 1;
  });
  await redis.set('a', '1');
  await gate.cut();
  await waitFor(() => attempts > 3);
  const again = await openGate(gate.port);
  await waitFor(() => lines.some(({ level }) => level === 'info'));
  expect(await redis.get('a')).toBe('1');
  expect(lines.map(({ level, role }) => [level, role])).toEqual([
    ['warn', 'general'],
    ['info', 'general'],
  ]);
  expect(text()).not.toContain(new URL(url).password);
  redis.disconnect();
  await again.cut();
});

it('tells of no outage where a connection is given up before one has come to its reason', async () => {
  const gate = await openGate();
  const { logger, lines } = testLogger();
  const redis = createRedis(gate.url, 'general', logger);
  await redis.set('a', '1');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const ended = once(redis, 'end');
  // As where a proxy ends the connection in order.
  redis.emit('reconnecting');
  redis.disconnect();
  await ended;
  vi.advanceTimersByTime(10_000);
  expect(lines).toEqual([]);
  await gate.cut();
});

it('tells what Redis itself refuses, also after an outage that had another reason', async () => {
  const own = await startTestRedis();
  const gate = await openGate();
  const { logger, lines } = testLogger();
  const through = new URL(own.url);
  through.port = String(gate.port);
  through.password = 'of-before';
  await gate.cut();
  const redis = createRedis(through.href, 'general', logger);
  const reasons = () => lines.map(({ err }) => (err as { message: string }).message.split(' ')[0]);
  await waitFor(() => lines.length === 1);
  const again = await openGate(gate.port, own.url);
  let attempts = 0;
  redis.on('reconnecting', () => {
    attempts++;
  });
  await waitFor(() => attempts > 3);
  expect(reasons()).toEqual(['connect', 'WRONGPASS']);
  redis.disconnect();
  await again.cut();
});

it('tells of connections that are ended in order', async () => {
  const ender = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
  await once(ender, 'listening');
  const { port } = ender.address() as AddressInfo;
  const { logger, lines } = testLogger();
  const redis = createRedis(`redis://127.0.0.1:${port}`, 'worker', logger);
  await waitFor(() => lines.length > 0);
  expect(lines).toMatchObject([{ level: 'warn', role: 'worker', msg: 'Redis cannot be reached, trying on' }]);
  expect(lines[0]).not.toHaveProperty('err');
  redis.disconnect();
  ender.close();
});

it.each(['general', 'worker'] as const)(
  'tries again within a second, however long Redis was away, where it is for %s use',
  (role) => {
    const redis = createRedis(url, role, testLogger().logger);
    const { retryStrategy } = redis.options;
    redis.disconnect();
    const pauses = [1, 20, 1_000, 100_000].map((attempt) => Number(retryStrategy?.(attempt)));
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1_000);
    expect(Math.min(...pauses)).toBeGreaterThan(0);
  },
);

it('fails within seconds where somebody waits, and waits where a worker does', async () => {
  const gate = await openGate();
  await gate.cut();
  const { logger } = testLogger();
  const general = createRedis(gate.url, 'general', logger);
  const worker = createRedis(gate.url, 'worker', logger);
  const waiting = worker.get('a');
  await expect(general.get('a')).rejects.toThrow(/max retries per request/);
  const again = await openGate(gate.port);
  expect(await waiting).toBe('1');
  general.disconnect();
  worker.disconnect();
  await again.cut();
});

it('leaves a server that takes no writes since a failover, and sends the command again where it is taken', async () => {
  const target = new URL(url);
  let connections = 0;
  const server = createServer((inward) => {
    const isReplica = connections++ === 0;
    const outward = connect(Number(target.port), target.hostname);
    inward.on('data', (chunk) => {
      if (isReplica && /\r\nset\r\n/i.test(String(chunk))) {
        inward.write("-READONLY You can't write against a read only replica.\r\n");
      } else outward.write(chunk);
    });
    outward.pipe(inward);
    for (const socket of [inward, outward]) socket.on('error', () => {});
    inward.on('close', () => outward.destroy());
  });
  const through = new URL(url);
  through.port = await new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(String((server.address() as AddressInfo).port)));
  });
  const redis = createRedis(through.href, 'general', testLogger().logger);
  // Answered behind whatever the connection asked of its own: the refusal below is no answer to that.
  expect(await redis.ping()).toBe('PONG');
  expect(await redis.set('after', 'failover')).toBe('OK');
  expect(connections).toBe(2);
  redis.disconnect();
  server.close();
});

it.skipIf(!isRealRedis)(
  'tells once that no server takes writes, to who waits at once, and tells when one does again',
  async () => {
    const own = await startTestRedis();
    const admin = new Redis(own.url);
    const { logger, lines } = testLogger();
    const general = createRedis(own.url, 'general', logger);
    const worker = createRedis(own.url, 'worker', logger);
    // As BullMQ has for its blocking commands.
    const further = worker.duplicate();
    await Promise.all([general, worker, further].map((redis) => once(redis, 'ready')));
    await admin.replicaof('127.0.0.1', '1');
    for (const redis of [general, worker, further]) {
      const answers = await Promise.allSettled([redis.set('a', '1'), redis.bzpopmin('b', 10)]);
      const refused = { status: 'rejected', reason: expect.objectContaining({ name: 'ReplyError' }) };
      expect(answers).toEqual([refused, refused]);
    }
    const readiness = checkRedis(general, { isPrivate: false });
    await expect(readiness).rejects.toThrow(/^Redis takes no writes: READONLY/);
    await admin.replicaof('NO', 'ONE');
    await waitFor(() => lines.length === 4);
    for (const redis of [general, worker, further]) expect(await redis.set('a', '1')).toBe('OK');
    const told = lines.map(({ level, role, msg }) => [level, role, msg]);
    for (const role of ['general', 'worker']) {
      expect(told.filter((line) => line[1] === role)).toEqual([
        ['error', role, 'Redis takes no writes, trying on'],
        ['info', role, 'Redis takes writes again'],
      ]);
    }
    for (const redis of [general, worker, further, admin]) redis.disconnect();
  },
);

it.skipIf(!isRealRedis).each(['eval', 'time'])(
  'says that Redis forbids its user what all scripts of the app need (%s), until it is allowed',
  async (command) => {
    const admin = new Redis(url);
    await admin.acl('SETUSER', 'few', 'on', '>few', '~*', '&*', '+@all', `-${command}`);
    const few = Object.assign(new URL(url), { username: 'few', password: 'few' });
    const redis = createRedis(few.href, 'general', testLogger().logger);
    const readiness = () => checkRedis(redis, { isPrivate: false });
    await expect(readiness()).rejects.toThrow(/^Redis forbids what the app needs: .*REDIS_URL/);
    await admin.acl('SETUSER', 'few', `+${command}`);
    await expect(readiness()).resolves.toBeUndefined();
    for (const connection of [redis, admin]) connection.disconnect();
  },
);

it.skipIf(!isRealRedis)('says that Redis runs in cluster mode, whichever slots it has', async () => {
  const busPort = String(await findFreePort());
  const server = await startRedisServer({ 'cluster-enabled': 'yes', 'cluster-port': busPort });
  const redis = createRedis(redisUrlAt(server.port), 'general', testLogger().logger);
  const readiness = (reason: string) =>
    waitFor(() =>
      checkRedis(redis, { isPrivate: false }).then(
        () => false,
        ({ message }: Error) =>
          message.startsWith('Redis runs in cluster mode') && message.includes(`: ${reason} `),
      ),
    );
  await readiness('CLUSTERDOWN');
  // All of them are this one's, as in a cluster of a single server, or behind an address that stands for all servers.
  await redis.cluster('ADDSLOTSRANGE', 0, 16_383);
  await readiness('CROSSSLOT');
  redis.disconnect();
});

it.skipIf(!isRealRedis)(
  'tells a Redis that drops keys when its memory is full, and what to set',
  async () => {
    const { logger, lines } = testLogger();
    const first = createRedis(url, 'worker', logger);
    await first.config('SET', 'maxmemory-policy', 'volatile-lru');
    const second = createRedis(url, 'general', logger);
    await waitFor(() => lines.length > 0);
    await first.config('SET', 'maxmemory-policy', 'noeviction');
    const third = createRedis(url, 'general', logger);
    await once(third, 'ready');
    await third.ping();
    expect(lines.map(({ level, policy, msg }) => [level, policy, msg])).toEqual([
      ['error', 'volatile-lru', expect.stringContaining('set its maxmemory-policy to noeviction')],
    ]);
    for (const redis of [first, second, third]) redis.disconnect();
  },
);
