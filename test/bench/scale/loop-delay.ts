import { request } from 'undici';

/** How late a process's event loop was, in milliseconds. */
export interface LoopDelay {
  p50: number;
  p99: number;
}

/** Reads the metrics of a worker: the delay since they were read before. */
export async function readLoopDelay(port: number): Promise<LoopDelay> {
  const answer = await request(`http://127.0.0.1:${port}/metrics`);
  const text = await answer.body.text();
  const ms = (name: string) => {
    const value = new RegExp(`^nodejs_eventloop_lag_${name}_seconds ([\\d.e+-]+)$`, 'm').exec(text)?.[1];
    if (value === undefined) throw new Error(`the worker does not tell its loop's ${name}`);
    return 1_000 * Number(value);
  };
  return { p50: ms('p50'), p99: ms('p99') };
}
