import { afterAll } from 'vitest';
import { openRedis, type RedisLease } from '../../src/runtime/private-redis.ts';
import { tempDir } from './temp-dir.ts';
import { testLogger } from './test-logger.ts';

const leases: RedisLease[] = [];

afterAll(async () => {
  await Promise.all(leases.splice(0).map((lease) => lease.release()));
});

/** Starts an empty Redis of its own; it ends when the test file is through. */
export async function startTestRedis(): Promise<{ url: string }> {
  const lease = await openRedis({ dir: tempDir(), logger: testLogger().logger });
  leases.push(lease);
  return { url: lease.url };
}
