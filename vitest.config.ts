// Says what helps, before a test starts the app with a Node that is too old.
import './src/runtime/node-version.js';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { SlowestFiles } from './test/support/slowest-files.ts';
import { PATIENCE_MS } from './test/support/wait-for.ts';

const pathOf = (file: string) => fileURLToPath(new URL(file, import.meta.url));

// Every file of tests has a process of its own, which would compile the libraries anew: a tenth of the suite's CPU time.
process.env.NODE_COMPILE_CACHE = pathOf('node_modules/.cache/compiled');

/** Makes forks and upgrades them: `npm run test:upgrade`. */
const UPGRADE = 'test/upgrade/**/*.test.ts';

/** Folders whose tests start processes or wait. `npm run test:quick` leaves them out, and PostgreSQL, too. */
const SLOW = ['acceptance', 'bench', 'browser', 'config', 'demo', 'jobs', 'runtime', 'sandbox', 'sync'];

export default defineConfig(({ mode }) => {
  const isQuick = mode === 'quick';
  const isUpgrade = mode === 'upgrade';
  return {
    test: {
      include: isUpgrade ? [UPGRADE] : [isQuick ? 'test/*/**/*.test.ts' : 'test/**/*.test.ts'],
      exclude: [
        ...(isUpgrade ? [] : [UPGRADE]),
        ...(isQuick ? SLOW.map((folder) => `test/${folder}/**`) : []),
      ],
      env: isQuick ? { TEST_DATABASE: 'sqlite' } : {},
      globalSetup: isQuick ? [] : ['test/support/postgres-for-all.ts'],
      reporters: ['default', new SlowestFiles()],
      // Files wait for a window's end, a process, a browser; but each has several processes at work.
      maxWorkers: availableParallelism() + 1,
      // Ends for what hangs: a test waits several times, and its waits end first, with words.
      testTimeout: 8 * PATIENCE_MS,
      expect: { poll: { timeout: PATIENCE_MS } },
      hookTimeout: PATIENCE_MS,
      teardownTimeout: 10_000,
    },
  };
});
