import { setTimeout as sleep } from 'node:timers/promises';

/** The end of a wait that hangs, in milliseconds. It is wide, since other programs may use the processors. */
export const PATIENCE_MS = 120_000;

/** The pause between two looks is a tenth of the wait so far, within these, in milliseconds. */
const POLL_MS = { least: 10, most: 250 } as const;

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
  const from = performance.now();
  for (;;) {
    let last: unknown;
    try {
      const value = await condition();
      if (value) return value as Exclude<Awaited<Value>, false | null | undefined | 0 | ''>;
      last = value;
    } catch (error) {
      last = error;
    }
    const waitedMs = performance.now() - from;
    if (waitedMs >= timeoutMs) {
      const state = last instanceof Error ? last.message : JSON.stringify(last);
      throw new Error(`Waited ${timeoutMs} ms for ${what}; last: ${state}`, { cause: last });
    }
    await sleep(Math.min(Math.max(waitedMs / 10, POLL_MS.least), POLL_MS.most));
  }
}
