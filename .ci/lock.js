// Writes package-lock.json anew after a change of package.json: `npm run lock`.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const FILE = new URL('../package-lock.json', import.meta.url);

// Without the addresses of whatever registry this machine uses.
execFileSync('npm', ['install', '--package-lock-only', '--omit-lockfile-registry-resolved'], {
  stdio: 'inherit',
});

// better-sqlite3 ships its binaries and says so itself; npm before version 11 reads it here only, and would call
// node-gyp otherwise, which wants Python and a compiler.
const lock = JSON.parse(readFileSync(FILE, 'utf8'));
lock.packages['node_modules/better-sqlite3'].gypfile = false;
writeFileSync(FILE, `${JSON.stringify(lock, null, 2)}\n`);
