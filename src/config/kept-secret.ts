import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Reads a secret that is generated once and kept in a file that only its owner may read.
 * Processes that start at the same time agree on one: the file appears complete or not at all.
 *
 * @param dir the directory, made (for its owner alone) when missing
 * @param name of the file
 * @param generate makes the secret's text when there is none yet
 * @throws the error of the file system when the file can neither be read nor written
 */
export function keptSecret(dir: string, name: string, generate: () => string): string {
  const path = join(dir, name);
  const kept = readIfThere(path);
  if (kept !== undefined) return kept;

  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const temporary = `${path}.${process.pid}.${randomBytes(6).toString('hex')}`;
  writeFileSync(temporary, `${generate()}\n`, { mode: 0o600, flag: 'wx' });
  try {
    // Unlike a rename, a link never replaces what another process has put there meanwhile.
    linkSync(temporary, path);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  } finally {
    rmSync(temporary);
  }
  return readFileSync(path, 'utf8').trim();
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
