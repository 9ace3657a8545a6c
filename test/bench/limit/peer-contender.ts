import type { PeerList, PeerOrder } from '../peers/peer.ts';
import { Child } from '../support/child.ts';
import { CpuMeter } from '../support/cpu-meter.ts';
import type { Contender, Track } from './contender.ts';

/** A peer: what it is called, and how it is set up. */
export interface PeerKind {
  peer: string;
  label: string;
  /** It counts in Redis, so that its processes share one limit; others get a part of it each. */
  shares: boolean;
}

export const PEER_KINDS: readonly PeerKind[] = [
  { peer: 'bullmq-limiter', label: 'BullMQ, limiter of the queue', shares: true },
  { peer: 'bullmq-manual', label: 'BullMQ, rateLimit on 429', shares: true },
  { peer: 'rate-limiter-flexible', label: 'rate-limiter-flexible, BullMQ', shares: true },
  { peer: 'bottleneck', label: 'bottleneck', shares: false },
  { peer: 'p-throttle', label: 'p-throttle', shares: false },
  { peer: 'plain-loop', label: 'loop that sleeps retry-after', shares: false },
  { peer: 'storing-loop', label: 'the same loop, storing', shares: false },
];

/** What every peer is told. */
export interface PeerSetting {
  apiUrl: string;
  redisUrl: string;
  /** For one that stores. */
  dir: string;
  limit: number;
  windowMs: number;
  workers: number;
}

/** The lists that all contenders go through, one cursor each. */
export function listsAt(apiUrl: string): PeerList[] {
  return ['contacts', 'conversations'].map((name) => ({ name, url: `${apiUrl}/${name}?limit=100` }));
}

/** Processes of one peer, which go through the lists of one company. */
export class PeerContender implements Contender {
  readonly name: string;
  readonly label: string;
  readonly isOurs = false;
  readonly tracks: readonly [Track];
  readonly #orders: PeerOrder[];
  readonly #cpu = new CpuMeter();
  #children: Child[] = [];

  constructor({ peer, label, shares }: PeerKind, track: Track, setting: PeerSetting) {
    this.name = peer;
    this.label = label;
    this.tracks = [track];
    const { apiUrl, redisUrl, dir, limit, windowMs, workers } = setting;
    const lists = listsAt(apiUrl);
    const token = track.grant.accessToken;
    const order = { peer, token, redisUrl, dir, prefix: peer, windowMs, resume: false };
    // A process that knows nothing of the others gets its part of the lists, and of the limit.
    this.#orders = Array.from({ length: workers }, (_, worker) =>
      shares
        ? { ...order, lists, limit }
        : { ...order, lists: lists.filter((_, at) => at % workers === worker), limit: limit / workers },
    );
  }

  async prepare(): Promise<void> {
    this.#children = await this.#start(this.#orders);
  }

  async go(): Promise<void> {
    for (const [at, child] of this.#children.entries()) {
      this.#cpu.watch(child.pid);
      // The second process of a queue finds the jobs there.
      child.send({ go: at });
    }
  }

  async killAndRestart(): Promise<void> {
    for (const child of this.#children) this.#cpu.leave(child.pid);
    await Promise.all(this.#children.map((child) => child.kill()));
    this.#children = await this.#start(this.#orders.map((order) => ({ ...order, resume: true })));
    await this.go();
  }

  cpuMs(): number {
    return this.#cpu.spentMs;
  }

  async end(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.kill()));
  }

  async #start(orders: readonly PeerOrder[]): Promise<Child[]> {
    const children = orders.map((order) => new Child('peers/peer-process.ts', [], order));
    await Promise.all(children.map((child) => child.said()));
    return children;
  }
}
