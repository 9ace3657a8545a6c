import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { PATIENCE_MS } from './test/support/patience.ts';

// Every file of tests has a process of its own, which would compile the libraries anew: a tenth of the suite's CPU time.
process.env.NODE_COMPILE_CACHE = fileURLToPath(new URL('./node_modules/.cache/compiled', import.meta.url));

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Many files wait most of the time: for a window's end, a process, a browser. Two workers a core keep it busy.
    maxWorkers: 2 * availableParallelism() + 1,
    // Ends for what hangs: a test waits several times, and its waits end first, with words.
    testTimeout: 8 * PATIENCE_MS,
    expect: { poll: { timeout: PATIENCE_MS } },
    hookTimeout: PATIENCE_MS,
    teardownTimeout: 10_000,
  },
});
