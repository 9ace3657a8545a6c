import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { mountPlaces, refuseMountedFile } from '../../src/store/mounted-file.ts';
import { mountFile } from '../support/mounted-file.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';

/** A line of the table, as Linux writes it. */
const lineOf = (place: string) =>
  `36 35 98:0 /srv/it ${place.replaceAll(' ', '\\040')} rw,noatime master:1 - ext4 /dev/root rw,errors=continue\n`;

test('the places of mounts are read as they are written: blanks, tabs, ends of lines and backslashes in octal', () => {
  const table = `${lineOf('/')}${lineOf('/data/app.db')}${lineOf('/a b')}${lineOf('/t\\011n\\012b\\134040é')}`;
  expect([...mountPlaces(table)].filter((place) => place !== '')).toEqual([
    '/',
    '/data/app.db',
    '/a b',
    '/t\tn\nb\\040é',
  ]);
});

test('a database file is refused where it is a mount, also behind a link; not where its directory is, or it is new', () => {
  const dir = join(tempDir(), 'a b');
  mkdirSync(dir);
  const [path, link] = [join(dir, 'app.db'), join(dir, 'link.db')];
  expect(() => refuseMountedFile(path, lineOf(path))).not.toThrow();
  writeFileSync(path, '');
  symlinkSync(path, link);
  for (const each of [path, link]) {
    expect(() => refuseMountedFile(each, lineOf(path))).toThrow(
      /is mounted by itself.*Mount its directory instead/,
    );
    for (const table of ['', lineOf(dir), lineOf(link)]) {
      expect(() => refuseMountedFile(each, table)).not.toThrow();
    }
  }
});

test('a process whose database file is mounted by itself does not start, says what to do, and leaves it as it is', async () => {
  const mounted = mountFile();
  const env = {
    DATABASE_URL: `file:${mounted.path}`,
    REDIS_URL: 'redis://127.0.0.1:9',
    TOKEN_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    SESSION_SECRET: 'of the test alone, and long enough',
  };
  if (mounted.kind === 'of this machine') {
    expect(() => refuseMountedFile(mounted.path)).toThrow(/Mount its directory instead/);
    return;
  }
  const started = spawnEntry('src/worker.ts', env, { through: mounted.through });
  expect(await started.exited).toEqual({ code: 1, signal: null });
  expect(started.output()).toContain(`The database file ${mounted.path} is mounted by itself`);
  expect(readFileSync(mounted.source, 'utf8')).toBe('');

  const elsewhere = { ...env, DATABASE_URL: `file:${dirname(mounted.path)}/another.db` };
  const other = spawnEntry('src/worker.ts', elsewhere, { through: mounted.through });
  await other.waitForOutput(/the workers run/);
  await other.stop('SIGKILL');
});
