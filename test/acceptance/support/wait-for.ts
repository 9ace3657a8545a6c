import { setTimeout as sleep } from 'node:timers/promises';

/** An end for what hangs, in milliseconds; no promise of the app. A test of a promised time names that time. */
export const PATIENCE_MS = 120_000;

/**
 * Polls until `condition` gives something true. It may be asynchronous, and may throw while it is not met.
 *
 * @throws Error with the last value or error when the time is over
 */
export async function waitFor<Value>(
  what: string,
  condition: () => Value | Promise<Value>,
  timeoutMs = PATIENCE_MS,
): Promise<Exclude<Awaited<Value>, false | null | undefined | 0 | ''>> {
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
    await sleep(25);
  }
}
