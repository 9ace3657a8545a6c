import { setTimeout as sleep } from 'node:timers/promises';
import { PATIENCE_MS } from './patience.ts';

const DEFAULT_INTERVAL_MS = 20;

/**
 * Polls until `condition` gives something true, for what cannot be awaited as an event.
 *
 * @param condition may be asynchronous, and may throw while it is not met
 * @returns what it gave
 * @throws Error with the last value or error when the time is over
 */
export async function waitFor<Value>(
  condition: () => Value | Promise<Value>,
  options: { timeoutMs?: number; intervalMs?: number; what?: string } = {},
): Promise<Exclude<Awaited<Value>, false | null | undefined | 0 | ''>> {
  const { timeoutMs = PATIENCE_MS, intervalMs = DEFAULT_INTERVAL_MS, what = 'the condition' } = options;
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    let last: unknown;
    try {
      const value = await condition();
      if (value) return value as Exclude<Awaited<Value>, false | null | undefined | 0 | ''>;
      last = value;
    } catch (error) {
      last = error;
    }
    if (performance.now() >= deadline) {
      const state = last instanceof Error ? last.message : JSON.stringify(last);
      throw new Error(`Waited ${timeoutMs} ms for ${what}; last: ${state}`, { cause: last });
    }
    await sleep(intervalMs);
  }
}
