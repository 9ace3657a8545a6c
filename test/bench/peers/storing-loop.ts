import { join } from 'node:path';
import { setImmediate as othersTurn, setTimeout as sleep } from 'node:timers/promises';
import { openWithRuns, plainWriter } from '../bare-store.ts';
import { fetchPage } from './fetch-page.ts';
import type { Peer } from './peer.ts';
import { prepareWalk } from './walk.ts';

const COMPANY = 'the company';

/** As the plain loop, but what it has read it stores, the plain way, while the next page is on its way. */
export const storingLoop: Peer = async (order) => {
  const lists = order.lists.map(({ name }) => ({ company: COMPANY, resource: name }));
  const write = plainWriter(await openWithRuns(`file:${join(order.dir, 'peer.db')}`, lists));
  const writing = new Map<string, Promise<void>>();
  return prepareWalk(order, async (url, resource) => {
    for (;;) {
      const fetched = await fetchPage(url, order.token);
      if ('next' in fetched) {
        await writing.get(resource);
        writing.set(
          resource,
          othersTurn().then(() => write({ company: COMPANY, resource }, fetched.page)),
        );
        return fetched.next;
      }
      await sleep(fetched.retryMs);
    }
  });
};
