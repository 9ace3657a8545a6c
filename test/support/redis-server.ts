import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll } from 'vitest';
import { findRedisProgram, isStandIn } from '../../src/runtime/private-redis.ts';
import { findFreePort } from './free-port.ts';
import { tempDir } from './temp-dir.ts';
import { waitFor } from './wait-for.ts';

const PASSWORD = 'of-the-tests-alone';

/** Settings, users and roles cannot be changed in the JavaScript one, which stands in where a machine has no other. */
export const isRealRedis = !isStandIn(findRedisProgram());

const running = new Set<ChildProcess>();

afterAll(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** A Redis that can be treated as a machine can: it dies, it freezes, it comes back at its address. */
export interface RedisServer {
  port: number;
  /** Ends it without a word, as a machine that loses its power. */
  kill(): Promise<void>;
  /** Starts it again, at the same port, with what its files hold. */
  start(): Promise<void>;
  /** Connections stay, new ones are taken, and nothing is answered. */
  freeze(): void;
  /** Answers go on, where nobody has given up. */
  unfreeze(): void;
}

/**
 * Starts an empty Redis of the kind that the app itself would start; all of them have one password.
 *
 * @param settings besides the usual ones, by their names in its configuration file
 */
export async function startRedisServer(settings: Record<string, string> = {}): Promise<RedisServer> {
  const port = await findFreePort();
  const dir = tempDir();
  let child: ChildProcess | undefined;
  const start = async () => {
    child = launch(port, dir, settings);
    const probe = new Redis(redisUrlAt(port), { retryStrategy: () => 20, maxRetriesPerRequest: null });
    probe.on('error', () => undefined);
    await waitFor(async () => (await probe.ping()) === 'PONG').finally(() => probe.disconnect());
  };
  await start();
  return {
    port,
    start,
    kill: async () => {
      if (child?.kill('SIGKILL')) await once(child, 'close');
    },
    freeze: () => child?.kill('SIGSTOP'),
    unfreeze: () => child?.kill('SIGCONT'),
  };
}

/** How a Redis is reached, directly or by a proxy before it. */
export function redisUrlAt(port: number): string {
  return `redis://:${PASSWORD}@127.0.0.1:${port}`;
}

function launch(port: number, dir: string, others: Record<string, string>): ChildProcess {
  const settings = {
    bind: '127.0.0.1',
    port,
    requirepass: PASSWORD,
    save: '""',
    appendonly: 'yes',
    ...others,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} ${value}\n`);
  writeFileSync(join(dir, 'redis.conf'), lines.join(''));
  const [command, ...args] = findRedisProgram();
  const log = openSync(join(dir, 'server.log'), 'a');
  const child = spawn(command, [...args, 'redis.conf'], { cwd: dir, stdio: ['ignore', log, log] });
  closeSync(log);
  running.add(child);
  child.once('close', () => running.delete(child));
  return child;
}
