import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Many files wait most of the time: for a window's end, a process, a browser. By default, two cores would run one.
    maxWorkers: availableParallelism() + 1,
    // Models of hours and processes take seconds, and several times that on a machine that has other work.
    testTimeout: 60_000,
    expect: { poll: { timeout: 10_000 } },
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
  },
});
