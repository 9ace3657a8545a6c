import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { Redis } from 'ioredis';
import { findFreePort } from '../../support/free-port.ts';
import { spawnProcess, type TestProcess, tempDir } from './processes.ts';
import { waitFor } from './wait-for.ts';

/** A Redis of a test's own, which can be treated as a machine can. */
export interface TestRedis {
  url: string;
  port: number;
  /** Ends it without a word. What it held is gone. */
  kill(): Promise<void>;
  /** Starts it again at its port, empty. */
  start(): Promise<void>;
  /** While it is frozen, connections stay and nothing is answered. */
  freeze(): void;
  unfreeze(): void;
}

const PASSWORD = 'of-the-tests-alone';

/** Starts an empty Redis: a server of this machine, else the JavaScript one that npm brings. */
export async function startRedis(): Promise<TestRedis> {
  const port = await findFreePort();
  const url = `redis://:${PASSWORD}@127.0.0.1:${port}`;
  let server: TestProcess | undefined;
  const start = async () => {
    const settings = { bind: '127.0.0.1', port, requirepass: PASSWORD, save: '""', appendonly: 'no' };
    const stdin = Object.entries(settings).map(([name, value]) => `${name} ${value}\n`);
    const [command, ...args] = program();
    server = spawnProcess(command, args, {
      cwd: tempDir(),
      env: { PATH: process.env.PATH ?? '' },
      stdin: stdin.join(''),
    });
    const probe = new Redis(url, { retryStrategy: () => 20, maxRetriesPerRequest: null });
    probe.on('error', () => undefined);
    await waitFor('Redis to answer', async () => (await probe.ping()) === 'PONG').finally(() =>
      probe.disconnect(),
    );
  };
  await start();
  return {
    url,
    port,
    start,
    kill: async () => void (await server?.stop('SIGKILL')),
    freeze: () => server?.signal('SIGSTOP'),
    unfreeze: () => server?.signal('SIGCONT'),
  };
}

function program(): [string, ...string[]] {
  const dirs = (process.env.PATH ?? '').split(delimiter).filter((dir) => dir !== '');
  for (const path of dirs.flatMap((dir) =>
    ['redis-server', 'valkey-server'].map((name) => join(dir, name)),
  )) {
    try {
      accessSync(path, constants.X_OK);
      return [path, '-'];
    } catch {
      // The next one, then.
    }
  }
  return [process.execPath, join(import.meta.dirname, 'js-redis.ts')];
}
