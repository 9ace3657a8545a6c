import { appendFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';
import { API, type Operation } from '../../src/contract/api/api.ts';
import { HEADER } from '../../src/contract/headers.ts';
import { exercised, MEASURED } from '../../src/sandbox/ledger/measured.ts';
import { cite } from '../../src/sandbox/ledger/rule.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** A directory to leave there what was exercised; the ledger is written from it. */
const RECORDS = process.env.LEDGER_RECORDS ?? '';

const seen = new Set<string>();

/** Notes which operation a test called, and what came of it. */
export function noteExercise(operation: string, status: number, headers: Headers): void {
  const route = API[operation as Operation] as { async?: true } | undefined;
  if (route === undefined) return;
  const what = exercised(operation, status, headers.get(HEADER.tier), route.async === true);
  if (what !== undefined) seen.add(what);
}

beforeEach(() => seen.clear());

// A test that the ledger cites must still do what it is cited for.
afterEach(({ task }) => {
  const file = relative(ROOT, task.file.filepath).split(sep).join('/');
  const self = cite(file, task.name);
  if (RECORDS !== '') {
    appendFileSync(join(RECORDS, `${process.pid}.ndjson`), `${JSON.stringify({ self, seen: [...seen] })}\n`);
    return;
  }
  if (task.result?.state === 'fail') return;
  const promised = Object.keys(MEASURED).filter((what) => MEASURED[what]?.includes(self));
  expect(
    promised.filter((what) => !seen.has(what)),
    'the ledger cites this test for it: `npm run ledger` measures anew',
  ).toEqual([]);
});
