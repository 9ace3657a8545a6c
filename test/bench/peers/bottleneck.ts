import Bottleneck from 'bottleneck';
import { fetchPage } from './fetch-page.ts';
import type { Peer, PeerOrder } from './peer.ts';
import { prepareWalk } from './walk.ts';

/** The service refused; the limiter tries again after this time, in milliseconds. */
class Refused extends Error {
  readonly retryMs: number;

  constructor(retryMs: number) {
    super('429');
    this.retryMs = retryMs;
  }
}

/**
 * Bottleneck: a reservoir that is filled anew every window, and a minimum time between two requests, as its
 * documentation asks for beside a reservoir; what fails with 429 is tried again by its 'failed' event. Its reservoir
 * cannot be shared by Redis here: that takes an interval that is a multiple of 5 s.
 */
export const bottleneck: Peer = (order) => {
  let limiter: Bottleneck | undefined;
  return prepareWalk(order, async (url) => {
    limiter ??= createLimiter(order);
    return limiter.schedule(async () => {
      const fetched = await fetchPage(url, order.token);
      if ('next' in fetched) return fetched.next;
      throw new Refused(fetched.retryMs);
    });
  });
};

/** Its interval starts when it is made: with the first request. */
function createLimiter({ limit, windowMs, lists }: PeerOrder): Bottleneck {
  const limiter = new Bottleneck({
    reservoir: limit,
    reservoirRefreshAmount: limit,
    reservoirRefreshInterval: windowMs,
    maxConcurrent: lists.length,
    minTime: windowMs / limit,
  });
  limiter.on('failed', (error: unknown) => (error instanceof Refused ? error.retryMs : undefined));
  return limiter;
}
