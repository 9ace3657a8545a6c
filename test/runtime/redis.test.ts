import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { checkRedis, createRedis, refuseUnfitRedis } from '../../src/runtime/redis.ts';
import { findFreePort } from '../support/free-port.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { testLogger } from '../support/test-logger.ts';
import { isRealRedis, redisUrlAt, startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';

const { url } = await startTestRedis();

/** Signed by itself, for localhost, until 2126. */
const TEST_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBgDCCASWgAwIBAgIUJwgvsC1Dv5et+cH+F3m/fnxbjD8wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTIwMTAwNTIxN1oYDzIxMjYxMTA3
MDA1MjE3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATILXe7g8VMiQtulBjmM0XVeO13lf4Efyk6kSszHQFTjUItnYAkiAVB
I70KCcWV4iI30081e9SQh3FuJhvrb1HFo1MwUTAdBgNVHQ4EFgQU4YZJAjaceef0
Zl/9Eh6OE+V1KXowHwYDVR0jBBgwFoAU4YZJAjaceef0Zl/9Eh6OE+V1KXowDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEAyE4zU7v1om+hcgACt0Mb
ohdaOe1hzrmAWCh+gHb8E7sCIQDIM3YCgvxZtF7ttq4KDYbsptuZsHm++OiWPKfO
0DhW8A==
-----END CERTIFICATE-----`;
const TEST_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgEwzQ8z06KbGbeqWb
a2702XjMZLtbrxOeaHmHggVCWQ+hRANCAATILXe7g8VMiQtulBjmM0XVeO13lf4E
fyk6kSszHQFTjUItnYAkiAVBI70KCcWV4iI30081e9SQh3FuJhvrb1HF
-----END PRIVATE KEY-----`;

/** A way to Redis that can be cut, and looks at what goes through. */
async function openGate(port = 0, onCommand: (chunk: Buffer, inward: Socket) => boolean = () => false) {
  const sockets = new Set<Socket>();
  const server = createServer((inward) => {
    const outward = connect(Number(new URL(url).port), '127.0.0.1');
    inward.on('data', (chunk) => onCommand(chunk, inward) || outward.write(chunk));
    outward.pipe(inward);
    inward.on('close', () => outward.destroy());
    for (const socket of [inward, outward]) sockets.add(socket.on('error', () => {}));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const address = server.address() as AddressInfo;
  const through = Object.assign(new URL(url), { port: String(address.port) });
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
  redis.on('reconnecting', () => void attempts++);
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
  for (const redis of [general, worker]) redis.disconnect();
  await again.cut();
});

it('leaves a server that takes no writes since a failover', async () => {
  let refused = 0;
  const gate = await openGate(0, (chunk, inward) => {
    if (refused > 0 || !/\r\nset\r\n/i.test(String(chunk))) return false;
    refused += 1;
    return inward.write("-READONLY You can't write against a read only replica.\r\n");
  });
  const redis = createRedis(gate.url, 'general', testLogger().logger);
  await redis.ping();
  let connections = 0;
  redis.on('connect', () => void connections++);
  await expect(redis.set('after', 'failover')).rejects.toThrow('READONLY');
  expect(await redis.set('after', 'failover')).toBe('OK');
  expect(connections).toBe(1);
  redis.disconnect();
  await gate.cut();
});

it.skipIf(!isRealRedis)(
  'names the rights that are missing, at the start and later, until they are there',
  async () => {
    const admin = new Redis(url);
    const setUser = (...rules: string[]) =>
      admin.acl('SETUSER', 'few', 'on', '>few', '~*', '&*', '+@all', ...rules);
    const few = Object.assign(new URL(url), { username: 'few', password: 'few' });
    await setUser();
    const redis = createRedis(few.href, 'general', testLogger().logger);
    await expect(checkRedis(redis)).resolves.toBeUndefined();
    const cases: [string[], string][] = [
      [['-@dangerous'], '+info'],
      [['-set', '-@stream', '-zadd'], '+set +zadd +xadd +xlen +xtrim'],
      [['-@scripting'], '+eval +evalsha'],
      [['-@blocking', '-client|setname'], '+bzpopmin +client|setname'],
      [['resetkeys', '~few:*'], '~*'],
    ];
    for (const [rules, rights] of cases) {
      await setUser(...rules);
      const message = `Redis does not allow the user "few" of REDIS_URL what the app needs: ACL SETUSER few ${rights}`;
      await expect(checkRedis(redis)).rejects.toThrow(message);
      await expect(refuseUnfitRedis(few.href)).rejects.toThrow(message);
      await admin.acl('SETUSER', 'few', ...rights.split(' '));
      await expect(checkRedis(redis)).resolves.toBeUndefined();
    }

    for (const connection of [redis, admin]) connection.disconnect();
  },
);

it('names the certificate that is not trusted', async () => {
  const server = createTlsServer({ key: TEST_KEY, cert: TEST_CERTIFICATE }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const redis = createRedis(`rediss://127.0.0.1:${port}`, 'general', testLogger().logger);
  await expect(checkRedis(redis)).rejects.toThrow(
    /^Redis cannot be reached, as its certificate is not trusted \(self-signed certificate.*\): name its authority in NODE_EXTRA_CA_CERTS\.$/,
  );
  redis.disconnect();
  server.close();
});

it('says that a Redis that answers nothing cannot be reached', async () => {
  const proxy = await startTcpProxy(Number(new URL(url).port));
  const through = Object.assign(new URL(url), { port: String(proxy.port) });
  const redis = createRedis(through.href, 'general', testLogger().logger);
  await redis.ping();
  proxy.silence();
  await expect(checkRedis(redis)).rejects.toThrow(/^Redis cannot be reached: .*REDIS_URL/);
  redis.disconnect();
});

it.skipIf(!isRealRedis).each([
  ['in cluster mode', { 'cluster-enabled': 'yes' }, /cluster mode/],
  ['that evicts keys', { 'maxmemory-policy': 'volatile-lru' }, /volatile-lru.*noeviction/],
])('a start refuses a Redis %s', async (_what, settings, words) => {
  const busPort = String(await findFreePort());
  const isCluster = 'cluster-enabled' in settings;
  const { port } = await startTestRedis(isCluster ? { ...settings, 'cluster-port': busPort } : settings);
  await expect(refuseUnfitRedis(redisUrlAt(port))).rejects.toThrow(words);
});

it('a start refuses a missing database number, and waits for a Redis that is away', async () => {
  const refusal = 'Redis refuses the database number at the end of REDIS_URL';
  await expect(refuseUnfitRedis(`${url}/123456`)).rejects.toThrow(refusal);
  await expect(refuseUnfitRedis(`${url}/3`)).resolves.toBeUndefined();
  await expect(refuseUnfitRedis('redis://127.0.0.1:9/3')).resolves.toBeUndefined();
});
