import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';

/** What a private Redis runs on. */
export type ServerKind = 'redis-server' | 'valkey-server' | 'js-redis-server';

/** A program that reads a Redis configuration from its standard input, and runs in the foreground. */
export interface ServerProgram {
  kind: ServerKind;
  command: string;
  args: string[];
}

/** The oldest that the app works with. Valkey began with 7.2. */
const OLDEST = { major: 6, minor: 2 };

/** How long a program may take to tell its version, in milliseconds. */
const TELLING_MS = 10_000;

/**
 * Finds what a private Redis can run on: a server binary that is not too old, else the JavaScript one, which is good for
 * trying out only.
 *
 * @param searchPath directories, as in the environment's PATH
 * @throws Error with what to do, when there is none (the JavaScript one is a development dependency)
 */
export function findServerProgram(searchPath: string): ServerProgram {
  for (const kind of ['redis-server', 'valkey-server'] as const) {
    const command = findExecutable(kind, searchPath);
    if (command !== undefined && !isTooOld(command)) return { kind, command, args: ['-'] };
  }
  try {
    createRequire(import.meta.url).resolve('js-redis-server/core');
  } catch (error) {
    const { major, minor } = OLDEST;
    const advice = `set REDIS_URL, or install redis-server (${major}.${minor} or newer) or valkey-server`;
    throw new Error(`There is no Redis: ${advice}.`, { cause: error });
  }
  const script = join(import.meta.dirname, 'js-redis-main.ts');
  return { kind: 'js-redis-server', command: process.execPath, args: [script] };
}

/** One that does not say how old it is, says why when it is started. */
function isTooOld(command: string): boolean {
  const { stdout } = spawnSync(command, ['--version'], { encoding: 'utf8', timeout: TELLING_MS });
  const [, major, minor] = /\bv=(\d+)\.(\d+)/.exec(stdout ?? '') ?? [];
  if (major === undefined) return false;
  return Number(major) < OLDEST.major || (Number(major) === OLDEST.major && Number(minor) < OLDEST.minor);
}

function findExecutable(name: string, searchPath: string): string | undefined {
  const candidates = searchPath
    .split(delimiter)
    .filter((dir) => dir !== '')
    .map((dir) => join(dir, name));
  return candidates.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
