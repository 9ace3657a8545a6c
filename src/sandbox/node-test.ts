import { after, before, beforeEach } from 'node:test';
import { sandboxHooks } from './hooks.ts';

export type * from './types.ts';

/** A sandbox for the tests of a file: it starts before them, resets before each, and stops after them. */
export const useSandbox = sandboxHooks({ beforeAll: before, beforeEach, afterAll: after });
