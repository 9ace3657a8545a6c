// `npm run ledger`: measures which tests exercise what, and writes the ledger's table into the documentation.
// `npm run ledger -- --table` writes the table alone, for a change of rules by hand.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { locate } from '../../src/sandbox/ledger/rule.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const MEASURED = 'src/sandbox/ledger/measured.json';
const PAGE = 'docs/fidelity.md';
/** More cases for one row would say no more. */
const CASES_MOST = 2;

interface Exercise {
  self: string;
  seen: string[];
}

function run(command: string, args: string[], records?: string): void {
  const { status } = spawnSync(join(ROOT, 'node_modules/.bin', command), args, {
    cwd: ROOT,
    stdio: 'inherit',
    env: records === undefined ? process.env : { ...process.env, LEDGER_RECORDS: records },
  });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}`);
}

function readExercises(directory: string): Exercise[] {
  return readdirSync(directory).flatMap((file) =>
    readFileSync(join(directory, file), 'utf8')
      .trim()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Exercise),
  );
}

/** For each thing that was exercised the tests that are about little else, always in the same order. */
function pickCases(exercises: Exercise[]): Record<string, string[]> {
  const keys = [...new Set(exercises.flatMap(({ seen }) => seen))].toSorted();
  const specific = exercises.toSorted(
    (one, other) => one.seen.length - other.seen.length || (one.self < other.self ? -1 : 1),
  );
  return Object.fromEntries(
    keys.map((key) => {
      const tests = specific.filter(({ seen }) => seen.includes(key)).map(({ self }) => self);
      return [key, [...new Set(tests)].slice(0, CASES_MOST)];
    }),
  );
}

function measure(): Exercise[] {
  const directory = mkdtempSync(join(tmpdir(), 'ledger-'));
  try {
    run('vitest', ['run', 'test/sandbox', '--exclude', 'test/sandbox/ledger.test.ts'], directory);
    return readExercises(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const exercises = process.argv.includes('--table') ? [] : measure();
if (exercises.length > 0) {
  writeFileSync(join(ROOT, MEASURED), `${JSON.stringify(pickCases(exercises))}\n`);
  run('biome', ['format', '--write', MEASURED]);
}

// Only now: they read what was just measured.
const { LEDGER } = await import('../../src/sandbox/ledger/ledger.ts');
const { ledgerMarkdown } = await import('../../src/sandbox/ledger/markdown.ts');
writeFileSync(join(ROOT, PAGE), ledgerMarkdown());

const ran = new Set(exercises.map(({ self }) => self));
const files = new Set([...ran].map((self) => locate(self).file));
const lost = LEDGER.flatMap(({ cases }) => cases).filter(
  (cited) => files.has(locate(cited).file) && !ran.has(cited),
);
if (lost.length > 0) throw new Error(`these did not run under the title that is cited:\n${lost.join('\n')}`);
