import { afterAll, beforeAll, beforeEach } from 'vitest';
import { createSandbox } from './sandbox.ts';
import type { Sandbox, SandboxOptions } from './types.ts';

export type * from './types.ts';

/**
 * A sandbox for the tests of a file: it starts before them, resets before each, and stops after them.
 *
 * @returns the handle, for use in tests and hooks
 */
export function useSandbox(options: SandboxOptions = {}): Sandbox {
  let running: Sandbox | undefined;
  beforeAll(async () => {
    running = await createSandbox(options);
  });
  beforeEach(() => running?.reset());
  afterAll(() => running?.close());
  return new Proxy({} as Sandbox, {
    get(_, name) {
      if (running === undefined)
        throw new Error('The sandbox starts before the tests: use it in tests and hooks.');
      return Reflect.get(running, name);
    },
  });
}
