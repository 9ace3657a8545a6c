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

/**
 * Finds what a private Redis can run on: a server binary, else the JavaScript one, which is good for trying out only.
 *
 * @param searchPath directories, as in the environment's PATH
 * @throws Error with what to do, when there is none (the JavaScript one is a development dependency)
 */
export function findServerProgram(searchPath: string): ServerProgram {
  for (const kind of ['redis-server', 'valkey-server'] as const) {
    const command = findExecutable(kind, searchPath);
    if (command !== undefined) return { kind, command, args: ['-'] };
  }
  try {
    createRequire(import.meta.url).resolve('js-redis-server/core');
  } catch (error) {
    const advice = 'set REDIS_URL, or install redis-server or valkey-server';
    throw new Error(`There is no Redis: ${advice}.`, { cause: error });
  }
  const script = join(import.meta.dirname, 'js-redis-main.ts');
  return { kind: 'js-redis-server', command: process.execPath, args: [script] };
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
