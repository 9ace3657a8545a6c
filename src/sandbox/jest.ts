import { sandboxHooks, sandboxMatchers } from './hooks.ts';

export type * from './types.ts';

/** What Jest puts into each test file. */
type JestGlobals = Parameters<typeof sandboxHooks>[0] & { expect: { extend(matchers: object): void } };

const { expect, beforeAll, beforeEach, afterAll } = globalThis as unknown as JestGlobals;

expect.extend(sandboxMatchers);

/** A sandbox for the tests of a file: it starts before them, resets before each, and stops after them. */
export const useSandbox = sandboxHooks({ beforeAll, beforeEach, afterAll });
