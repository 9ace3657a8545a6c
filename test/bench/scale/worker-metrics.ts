import { request } from 'undici';

/** What is measured are the times between two samples of a timer, not how much later than due they come. */
const SAMPLE_EVERY_MS = 10;

/** How late a process's event loop was, in milliseconds. */
export interface LoopDelay {
  p50: number;
  p99: number;
}

/** What a worker's metrics say, by name; only those without labels. */
export async function readMetrics(port: number): Promise<(name: string) => number> {
  const answer = await request(`http://127.0.0.1:${port}/metrics`);
  const text = await answer.body.text();
  return (name) => {
    const value = new RegExp(`^${name} ([\\d.e+-]+)$`, 'm').exec(text)?.[1];
    if (value === undefined) throw new Error(`the worker does not tell its ${name}`);
    return Number(value);
  };
}

/** The delay of a worker's event loop since its metrics were read before. */
export async function readLoopDelay(port: number): Promise<LoopDelay> {
  const metric = await readMetrics(port);
  const ms = (name: string) =>
    Math.max(0, 1_000 * metric(`nodejs_eventloop_lag_${name}_seconds`) - SAMPLE_EVERY_MS);
  return { p50: ms('p50'), p99: ms('p99') };
}
