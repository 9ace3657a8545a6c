import { setTimeout as sleep } from 'node:timers/promises';
import pThrottle from 'p-throttle';
import { fetchPage } from './fetch-page.ts';
import type { Peer } from './peer.ts';
import { prepareWalk } from './walk.ts';

/** p-throttle, strict: no more than the limit in any interval of the window's length. */
export const throttled: Peer = (order) => {
  const { limit, windowMs, token } = order;
  const fetchThrottled = pThrottle({ limit, interval: windowMs, strict: true })((url: string) =>
    fetchPage(url, token),
  );
  return prepareWalk(order, async (url) => {
    for (;;) {
      const fetched = await fetchThrottled(url);
      if ('next' in fetched) return fetched.next;
      await sleep(fetched.retryMs);
    }
  });
};
