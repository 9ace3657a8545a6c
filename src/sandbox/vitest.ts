import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { sandboxHooks, sandboxMatchers } from './hooks.ts';
import type { Sandbox, WantedRequest } from './types.ts';

export type * from './types.ts';

declare module 'vitest' {
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown> {
    /** Of the handle: see {@link Sandbox.received}. */
    toHaveReceived(wanted: WantedRequest): R;
  }
}

expect.extend(sandboxMatchers);

/** A sandbox for the tests of a file: it starts before them, resets before each, and stops after them. */
export const useSandbox = sandboxHooks({ beforeAll, beforeEach, afterAll });
