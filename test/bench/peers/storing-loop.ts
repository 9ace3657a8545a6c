import { join } from 'node:path';
import { setImmediate as othersTurn, setTimeout as sleep } from 'node:timers/promises';
import { openBareStore, type Stored } from '../bare-store.ts';
import { fetchPage } from './fetch-page.ts';
import type { Peer } from './peer.ts';
import { prepareWalk } from './walk.ts';

/** As the plain loop, but what it has read it stores, the plain way, while the next page is on its way. */
export const storingLoop: Peer = async (order) => {
  const store = await openBareStore(`file:${join(order.dir, `peer-${process.pid}.db`)}`);
  const writing = new Map<string, Promise<Stored>>();
  return prepareWalk(order, async (url, list) => {
    for (;;) {
      const fetched = await fetchPage(url, order.token);
      if ('next' in fetched) {
        await writing.get(list);
        writing.set(
          list,
          othersTurn().then(() => store.write(list, fetched.page)),
        );
        return fetched.next;
      }
      await sleep(fetched.retryMs);
    }
  });
};
