import { setTimeout as sleep } from 'node:timers/promises';
import { fetchPage } from './fetch-page.ts';
import type { Peer } from './peer.ts';
import { prepareWalk } from './walk.ts';

/** As fast as the service answers; after a 429 it sleeps for as long as `retry-after` says. */
export const plainLoop: Peer = (order) =>
  prepareWalk(order, async (url) => {
    for (;;) {
      const fetched = await fetchPage(url, order.token);
      if ('next' in fetched) return fetched.next;
      await sleep(fetched.retryMs);
    }
  });
