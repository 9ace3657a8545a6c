import { spawnSync } from 'node:child_process';
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { tempDir } from './temp-dir.ts';

const SIZE_MB = 32;
const BLOCK = Buffer.alloc(64 * 1024, 1);

/** A disk of a process that can be full without harm to anybody else. */
export interface SmallDisk {
  /** What it is made of. */
  kind: 'file system' | 'limit of the process';
  /** The directory, as the process sees it. */
  dir: string;
  /** What the process is started through; see `spawnEntry`. */
  through: readonly string[];
  /** Not a byte more goes on it. */
  fill(pid: number): void;
  /** There is room again. */
  free(pid: number): void;
}

/**
 * Makes a small disk, without privileges: a file system in memory that the process alone sees; where the machine allows
 * nobody that, the operating system's limit of the sizes of its files, which stops every write in the same place.
 *
 * @throws Error when there is neither
 */
export function makeSmallDisk(): SmallDisk {
  const dir = tempDir();
  const mount = `mount -t tmpfs -o size=${SIZE_MB}m none "$0" && exec "$@"`;
  const through = ['unshare', '-rm', 'sh', '-c', mount, dir];
  if (works([...through, 'true'])) return { kind: 'file system', dir, through, ...filler(dir) };
  if (works(['prlimit', '--version']))
    return { kind: 'limit of the process', dir, through: [], ...limiter() };
  throw new Error('A full disk needs "unshare" with user namespaces, or "prlimit" (both of util-linux).');
}

function works([command = '', ...args]: readonly string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0;
}

function filler(dir: string): Pick<SmallDisk, 'fill' | 'free'> {
  const path = (pid: number) => join(`/proc/${pid}/root`, dir, 'filler');
  return {
    fill: (pid) => {
      const file = openSync(path(pid), 'w');
      try {
        for (;;) writeSync(file, BLOCK);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      } finally {
        fsyncSync(file);
        closeSync(file);
      }
    },
    free: (pid) => rmSync(path(pid)),
  };
}

function limiter(): Pick<SmallDisk, 'fill' | 'free'> {
  const limit = (pid: number, bytes: string) => {
    if (!works(['prlimit', '--pid', String(pid), `--fsize=${bytes}:unlimited`]))
      throw new Error('prlimit failed');
  };
  return { fill: (pid) => limit(pid, '1'), free: (pid) => limit(pid, 'unlimited') };
}
