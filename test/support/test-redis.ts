import { accessSync, constants, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { Redis } from 'ioredis';
import { findFreePort } from './free-port.ts';
import { spawnProcess, type TestProcess } from './spawn-entry.ts';
import { tempDir } from './temp-dir.ts';
import { waitFor } from './wait-for.ts';

const PASSWORD = 'of-the-tests-alone';

const STAND_IN = join(import.meta.dirname, '../../src/runtime/js-redis-main.ts');

const SERVER = (process.env.PATH ?? '')
  .split(delimiter)
  .flatMap((dir) => (dir === '' ? [] : [join(dir, 'redis-server'), join(dir, 'valkey-server')]))
  .find(isExecutable);

/** Whether this machine has a Redis. The one in JavaScript, used instead, lacks settings, users and roles. */
export const isRealRedis = SERVER !== undefined;

/** A Redis of a test's own, which a test can treat like a machine. */
export interface TestRedis {
  url: string;
  port: number;
  /** Kills it. Its data is lost. */
  kill(): Promise<void>;
  /** Starts it again at its port, empty. */
  start(): Promise<void>;
  /** A frozen Redis keeps its connections and answers nothing. */
  freeze(): void;
  unfreeze(): void;
}

/** Starts an empty Redis, which ends with the test file. @param settings more lines of its configuration */
export async function startTestRedis(settings: Record<string, string> = {}): Promise<TestRedis> {
  const port = await findFreePort();
  const url = redisUrlAt(port);
  const lines = { bind: '127.0.0.1', port, requirepass: PASSWORD, save: '""', appendonly: 'no', ...settings };
  const dir = tempDir();
  const file = join(dir, 'redis.conf');
  writeFileSync(
    file,
    Object.entries(lines)
      .map(([name, value]) => `${name} ${value}\n`)
      .join(''),
  );
  const program = SERVER ? [SERVER] : [process.execPath, STAND_IN];
  let server: TestProcess | undefined;
  const start = async () => {
    const [command = '', ...args] = [...program, file];
    server = spawnProcess(command, args, { cwd: dir, env: { PATH: process.env.PATH ?? '' } });
    const probe = new Redis(url, { retryStrategy: () => 20, maxRetriesPerRequest: null });
    probe.on('error', () => undefined);
    await waitFor(async () => (await probe.ping()) === 'PONG', 'Redis').finally(() => probe.disconnect());
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

/** The URL of a test's Redis behind a port: its own port, or a proxy's. */
export function redisUrlAt(port: number): string {
  return `redis://:${PASSWORD}@127.0.0.1:${port}`;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
