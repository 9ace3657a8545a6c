import { readFileSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { expect, test } from 'vitest';

const LINES = readFileSync(join(import.meta.dirname, '../.gitignore'), 'utf8').split('\n');

/** What the app, and the commands of its messages and of docs/deploy.md, leave in a directory: there are secrets in it. */
const PRIVATE = [
  ...[
    '.env',
    '.data/app.db',
    '.data/token-keys',
    'data/app.db',
    'backup.db',
    'backup.db-part',
    'partner.sqlite',
  ],
  ...[
    '-wal',
    '-shm',
    '-journal',
    '-own',
    '-workers/x.lock',
    '-before-20260301T120000000Z',
    '-before-20260301T120000000Z-wal',
    '-restoring',
  ].map((end) => `app.db${end}`),
];

/** A line without a slash, but at its end, is about a file or directory of that name wherever it is. */
const isIgnored = (path: string) =>
  path
    .split('/')
    .some((name) => LINES.some((line) => line !== '' && matchesGlob(name, line.replace(/\/$/, ''))));

test('“git add -A” takes no database, no file beside one, and no backup', () => {
  expect(PRIVATE.filter((path) => !isIgnored(path))).toEqual([]);
  expect(['README.md', 'src/store/database.ts'].filter(isIgnored)).toEqual([]);
});
