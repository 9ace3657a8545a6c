import { Redis } from 'ioredis';
import type { PeerOrder } from './peer.ts';

/**
 * Two cursors side by side, one for each list, kept in Redis after each page: what a peer without a queue needs to go
 * on after a kill -9.
 *
 * @param page gets one page of a list, however often it must ask for it, and answers the address of the next
 */
export async function prepareWalk(
  { lists, redisUrl, prefix, resume }: PeerOrder,
  page: (url: string, list: string) => Promise<string>,
): Promise<() => Promise<void>> {
  const redis = new Redis(redisUrl);
  await redis.ping();
  return async () => {
    await Promise.all(
      lists.map(async ({ name, url: first }) => {
        const key = `${prefix}:${name}`;
        for (let url = (resume ? await redis.get(key) : null) ?? first; ; ) {
          url = await page(url, name);
          await redis.set(key, url);
        }
      }),
    );
  };
}
