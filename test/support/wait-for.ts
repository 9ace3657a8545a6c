import { setTimeout as sleep } from 'node:timers/promises';

/** The end of a wait that hangs, in milliseconds. It is wide, since other programs may use the processors. */
export const PATIENCE_MS = 120_000;

const POLL_MS = 20;

/**
 * Polls until `condition` returns a truthy value. The condition may be asynchronous, and may throw while it is not met.
 *
 * @throws Error with the last value or error when `timeoutMs` is over
 */
export async function waitFor<Value>(
  condition: () => Value | Promise<Value>,
  what = 'the condition',
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
    await sleep(POLL_MS);
  }
}
