import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { PARTNER_LIMIT } from '../../../src/contract/limits.ts';
import type { Company } from '../../../src/sandbox/types.ts';
import { bareLists, nextMessage, type Stage } from '../stage.ts';
import type { PeerOrder } from './peers.ts';

/** A program that copies companies, each at its limit. */
export interface Contender {
  label: string;
  companies: readonly Company[];
  /** Starts its processes. They wait, but after a kill they go on with the work. */
  start(isRestart: boolean): Promise<ChildProcess[]>;
  /** Begins the work. */
  go(processes: readonly ChildProcess[]): Promise<unknown>;
}

/** The best library, and what one writes without any. */
export const PEERS = ['bottleneck', 'sleeping loop'] as const;

/** This app: worker processes as `npm run worker` starts them. */
export function ourContender(stage: Stage, companies: readonly Company[], workers: number): Contender {
  return {
    label: 'this app',
    companies,
    start: () => Promise.all(Array.from({ length: workers }, () => stage.startWorker())),
    go: () => Promise.all(companies.map(({ id }) => stage.app.control.syncNow(`ins_${id}`))),
  };
}

/** A peer with one company. */
export function peerContender(
  { sandbox, redisUrl, stack }: Stage,
  peer: (typeof PEERS)[number],
  company: Company,
  { windowMs, workers }: { windowMs: number; workers: number },
): Contender {
  const all = bareLists(sandbox.apiUrl, [company]);
  const token = sandbox.tokens(sandbox.application, company).access_token;
  const startOne = async (worker: number, resume: boolean) => {
    // The processes do not know each other: each gets a part of the lists and of the limit.
    const lists = all.filter((_, at) => at % workers === worker);
    const limit = PARTNER_LIMIT / workers;
    const order: PeerOrder = { peer, lists, token, redisUrl, limit, windowMs, resume };
    const child = fork(join(import.meta.dirname, 'peers.ts'), [JSON.stringify(order)]);
    stack.defer(() => void child.kill('SIGKILL'));
    await nextMessage(child);
    return child;
  };
  return {
    label: peer,
    companies: [company],
    start: (isRestart) =>
      Promise.all(Array.from({ length: workers }, (_, worker) => startOne(worker, isRestart))),
    go: async (processes) => {
      for (const child of processes) child.send('go');
    },
  };
}
