import { setTimeout as sleep } from 'node:timers/promises';

/** What this process asks, with which header, until it is told to stop. */
export interface AskOrder {
  urls: Readonly<Record<string, readonly string[]>>;
  authorization: string;
  everyMs: number;
}

/** The times of the answers by the name of their address, in milliseconds. */
export type AskTimes = Record<string, number[]>;

// In the process of the sandbox the times would be its own.
process.once('message', async ({ urls, authorization, everyMs }: AskOrder) => {
  let isOver = false;
  process.once('message', () => {
    isOver = true;
  });
  const times: AskTimes = Object.fromEntries(Object.keys(urls).map((name) => [name, []]));
  const ask = async (name: string, url: string) => {
    const begun = performance.now();
    const answer = await fetch(url, { headers: { authorization } });
    await answer.arrayBuffer();
    if (!answer.ok) throw new Error(`${url} answered ${answer.status}.`);
    times[name]?.push(performance.now() - begun);
  };
  while (!isOver) {
    for (const [name, list] of Object.entries(urls)) for (const url of list) await ask(name, url);
    await sleep(everyMs);
  }
  process.send?.(times, () => process.exit());
});
