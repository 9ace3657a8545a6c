import { setTimeout as sleep } from 'node:timers/promises';

/** What this process asks, with which header, until it is told to stop. */
export interface AskOrder {
  urls: Readonly<Record<string, readonly string[]>>;
  authorization: string;
  everyMs: number;
}

/** By name, in milliseconds: how long the answers took, and the delays of loops that they tell, as `p99` and `max`. */
export type AskTimes = Record<string, number[]>;

const DELAY = /^nodejs_eventloop_lag_(p99|max)_seconds (\S+)$/gm;

// In the process of the sandbox the times would be its own.
process.once('message', async ({ urls, authorization, everyMs }: AskOrder) => {
  let isOver = false;
  process.once('message', () => {
    isOver = true;
  });
  const times: AskTimes = {};
  const note = (name: string, ms: number) => {
    times[name] = [...(times[name] ?? []), ms];
  };
  const ask = async (name: string, url: string, isFirst: boolean) => {
    const begun = performance.now();
    const answer = await fetch(url, { headers: { authorization } }).catch(() => undefined);
    const body = (await answer?.text()) ?? '';
    // Without an answer the time has no end.
    note(name, answer?.ok ? performance.now() - begun : Number.POSITIVE_INFINITY);
    // Each answer tells of the time since the one before: the first one of the start.
    for (const [, of = '', seconds] of isFirst ? [] : body.matchAll(DELAY)) note(of, Number(seconds) * 1_000);
  };
  for (let isFirst = true; !isOver; isFirst = false) {
    for (const [name, list] of Object.entries(urls)) for (const url of list) await ask(name, url, isFirst);
    await sleep(everyMs);
  }
  process.send?.(times, () => process.exit());
});
