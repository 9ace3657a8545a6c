import { createSandbox } from './sandbox.ts';
import type { Sandbox, SandboxOptions, WantedRequest } from './types.ts';

/** Hooks of a test runner. */
interface Hooks {
  beforeAll(run: () => Promise<void>): void;
  beforeEach(run: () => void): void;
  afterAll(run: () => Promise<void> | undefined): void;
}

/**
 * Makes `useSandbox` for a test runner: a sandbox for the tests of a file that starts before them, resets before each,
 * and stops after them.
 */
export function sandboxHooks({ beforeAll, beforeEach, afterAll }: Hooks) {
  return (options: SandboxOptions = {}): Sandbox => {
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
  };
}

/** Matchers for the `expect` of Vitest and Jest. */
export const sandboxMatchers = {
  /** See {@link Sandbox.received}. */
  toHaveReceived(sandbox: Sandbox, wanted: WantedRequest) {
    try {
      const { n, method, path } = sandbox.received(wanted);
      return { pass: true, message: () => `Request ${n}, ${method} ${path}, is one that was not wanted.` };
    } catch (error) {
      if ((error as { status?: number }).status !== 404) throw error;
      return { pass: false, message: () => (error as Error).message };
    }
  },
};
