import { Redis } from 'ioredis';
import { createLogger } from '../../src/runtime/logging.ts';
import { openRedis } from '../../src/runtime/private-redis.ts';

/** Opens the private Redis of the directory that the first argument names, and on SIGINT uses it once more and leaves. */
const [, , dir = ''] = process.argv;
const lease = await openRedis({ dir, logger: createLogger({ logLevel: 'silent', production: true }) });
const redis = new Redis(lease.url);
redis.on('error', () => {});
process.once('SIGINT', async () => {
  process.stdout.write(`still there: ${await redis.ping()}\n`);
  redis.disconnect();
  await lease.release();
});
process.stdout.write('open\n');
