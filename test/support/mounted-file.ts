import { spawnSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mountPlaces } from '../../src/store/mounted-file.ts';
import { tempDir } from './temp-dir.ts';

/** A file that is mounted by itself, as into a container. */
export interface MountedFile {
  /** What it is made of. */
  kind: 'bind mount' | 'of this machine';
  path: string;
  /** Where its bytes are, as others see it. */
  source: string;
  /** What a process is started through that is to see it; see `spawnEntry`. */
  through: readonly string[];
}

/**
 * Mounts an empty file, without privileges, so that a process alone sees it; where the machine allows nobody that, one
 * that is mounted already, as containers have them: that is not to be written.
 *
 * @throws Error when there is neither
 */
export function mountFile(): MountedFile {
  const [source, path] = [join(tempDir(), 'app.db'), join(tempDir(), 'with a blank.db')];
  for (const file of [source, path]) writeFileSync(file, '');
  const through = [
    'unshare',
    '-rm',
    'sh',
    '-c',
    'mount --bind "$0" "$1" && shift && exec "$@"',
    source,
    path,
  ];
  const [command = '', ...args] = [...through, 'true'];
  if (spawnSync(command, args, { stdio: 'ignore' }).status === 0)
    return { kind: 'bind mount', path, source, through };
  const mounted = [...mountPlaces(readFileSync('/proc/self/mountinfo', 'utf8'))];
  const found = mounted.find((place) => statSync(place, { throwIfNoEntry: false })?.isFile());
  if (found !== undefined) return { kind: 'of this machine', path: found, source: found, through: [] };
  throw new Error('A mounted file needs "unshare" with user namespaces (of util-linux), or a container.');
}
