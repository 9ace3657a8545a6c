import { bottleneck } from './bottleneck.ts';
import { bullmqLimiter } from './bullmq-limiter.ts';
import { bullmqManual } from './bullmq-manual.ts';
import { throttled } from './p-throttle.ts';
import type { Peer, PeerOrder } from './peer.ts';
import { plainLoop } from './plain-loop.ts';
import { rateLimiterFlexible } from './rate-limiter-flexible.ts';
import { storingLoop } from './storing-loop.ts';

const PEERS: Readonly<Record<string, Peer>> = {
  'bullmq-limiter': bullmqLimiter,
  'bullmq-manual': bullmqManual,
  bottleneck,
  'p-throttle': throttled,
  'rate-limiter-flexible': rateLimiterFlexible,
  'plain-loop': plainLoop,
  'storing-loop': storingLoop,
};

const order = JSON.parse(process.argv[2] ?? '{}') as PeerOrder;
const prepare = PEERS[order.peer];
if (prepare === undefined) throw new Error(`there is no peer ${order.peer}`);
const run = await prepare(order);
process.once('message', () => void run());
process.on('disconnect', () => process.exit());
process.send?.({ ready: true });
