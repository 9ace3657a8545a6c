import { expect, it } from 'vitest';
import { openRedis } from '../../src/runtime/private-redis.ts';
import { createRedis } from '../../src/runtime/redis.ts';
import { isRealRedis, redisUrlAt, startRedisServer } from '../support/redis-server.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestApp } from '../support/test-app.ts';
import { testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';

const { env, redisUrl } = await startTestApp({ workers: false });
const { logger } = testLogger();

/** A number that no Redis has. */
const REFUSED = 123456;

it.each(['src/web.ts', 'src/worker.ts'])(
  'a start (%s) with a number at the end of REDIS_URL that Redis does not have fails, and says so',
  async (entry) => {
    const { PORT: _, ...others } = env;
    const started = spawnEntry(entry, { ...others, PORT: '0', REDIS_URL: `${redisUrl}/${REFUSED}` });
    expect(await started.exited).toEqual({ code: 1, signal: null });
    expect(started.output()).toMatch(/Redis refuses the database with the number 123456: .*REDIS_URL/);
  },
);

it('a Redis that is away, or answers nothing, or has the number, keeps no start from going on', async () => {
  const mute = await startTcpProxy(Number(new URL(redisUrl).port));
  mute.silence();
  const open = (url: string) => openRedis({ redisUrl: url, dir: tempDir(), logger });
  for (const url of [
    `redis://127.0.0.1:9/${REFUSED}`,
    `${redisUrlAt(mute.port)}/${REFUSED}`,
    `${redisUrl}/3`,
  ]) {
    expect((await open(url)).url).toBe(url);
  }
});

it('a connection that is refused its database works in no other, nor does a duplicate of it, and says why', async () => {
  const { url } = await startTestRedis();
  const log = testLogger();
  const refused = createRedis(`${url}/${REFUSED}`, 'general', log.logger);
  const duplicate = refused.duplicate();
  duplicate.on('error', () => {});
  for (const redis of [refused, duplicate]) {
    await expect(redis.set('a', '1')).rejects.toThrow(/max retries/);
    redis.disconnect();
  }
  const inOther = createRedis(url, 'general', logger);
  expect(await inOther.dbsize()).toBe(0);
  inOther.disconnect();
  expect(log.lines.map(({ level }) => level)).toEqual(['warn']);
  expect(log.text()).toContain(`Redis refuses the database with the number ${REFUSED}`);
});

it.skipIf(!isRealRedis)(
  'a Redis without HELLO, as an old one or a proxy, is worked with at the number, too',
  async () => {
    const { port } = await startRedisServer({ 'rename-command': 'HELLO ""' });
    const redis = createRedis(`${redisUrlAt(port)}/3`, 'general', logger);
    await redis.set('a', '1');
    expect(await redis.call('CLIENT', 'INFO')).toMatch(/ db=3 /);
    redis.disconnect();
  },
);

it.skipIf(!isRealRedis)('a user that may not choose a database ends the start, too', async () => {
  const { port } = await startRedisServer();
  const admin = createRedis(redisUrlAt(port), 'general', logger);
  await admin.call('ACL', 'SETUSER', 'few', 'on', '>few', '~*', '&*', '+@all', '-select');
  admin.disconnect();
  const url = `redis://few:few@127.0.0.1:${port}/3`;
  await expect(openRedis({ redisUrl: url, dir: tempDir(), logger })).rejects.toThrow(/let this user SELECT/);
});
