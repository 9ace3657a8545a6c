import { Redis } from 'ioredis';
import { createLogger } from '../../src/runtime/logging.ts';
import { openRedis } from '../../src/runtime/private-redis.ts';

/** Opens the private Redis of the directory that the first argument names, and releases it on SIGINT, or unused on SIGTERM. */
const [, , dir] = process.argv;
if (dir === undefined) throw new Error('a directory is needed');
const logger = createLogger({ logLevel: 'silent', production: true });
const lease = await openRedis({ dir, logger, searchPath: process.env.SEARCH_PATH });
const redis = new Redis(lease.url);
process.once('SIGINT', async () => {
  process.stdout.write(`still there: ${await redis.ping()}\n`);
  redis.disconnect();
  await lease.release();
});
process.once('SIGTERM', async () => {
  redis.disconnect();
  await lease.release();
  process.stdout.write('released\n');
});
redis.on('error', () => {});
redis.on('close', () => process.stdout.write('gone\n'));
process.stdout.write('open\n');
