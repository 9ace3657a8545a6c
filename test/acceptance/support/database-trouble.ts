import { execFileSync } from 'node:child_process';
import { afterAll } from 'vitest';
import { startPostgresServer } from '../../support/postgres-server.ts';
import { lock } from './database.ts';

/** A database whose disk a test can fill. */
export interface TroubledDatabase {
  /** Variables for the app's processes. */
  env: Record<string, string>;
  /** What happens to it, and what the app says of it. */
  lost: { what: string; reason: RegExp };
  /** @param pids of the app's processes @returns what ends it */
  lose(pids: readonly number[]): Promise<() => Promise<unknown>>;
  /** Another program locks it. @returns what unlocks it */
  lock(url: string): Promise<() => Promise<unknown>>;
}

/** Makes the database of a world in which it gets into trouble: a file, or a server of its own. */
export async function makeTroubledDatabase(): Promise<TroubledDatabase> {
  if (process.env.TEST_DATABASE !== 'postgres') {
    // Stands in for a full disk: the operating system lets the processes write no file beyond so many bytes.
    const limitFiles = (pids: readonly number[], bytes: string) => {
      for (const pid of pids) execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
    };
    return {
      env: {},
      lost: { what: 'a full disk', reason: /full|grow|space|room/i },
      lock,
      async lose(pids) {
        limitFiles(pids, '1');
        return async () => limitFiles(pids, 'unlimited');
      },
    };
  }
  const server = await startPostgresServer();
  afterAll(() => server.close());
  return {
    env: { DATABASE_URL: server.url },
    // It ends itself when it cannot write its log, and does not start while that is so.
    lost: { what: 'a full disk', reason: /full|reach|connect/i },
    lock,
    async lose() {
      server.fillDisk();
      return async () => {
        await server.stop();
        await server.start();
      };
    },
  };
}
