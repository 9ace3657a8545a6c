import { readFileSync } from 'node:fs';
import type { Call } from '../support/handler-report.ts';
import { onChanges as report } from './report.ts';

/** Fails as the file of the test says, which may change meanwhile: for some records, or for all of a company. */
export async function onChanges(batch: Call): Promise<void> {
  await report(batch);
  const { throws, hangs } = JSON.parse(readFileSync(process.env.TEST_FAILURES ?? '', 'utf8')) as {
    throws: string[];
    hangs: string[];
  };
  const names = [...batch.changes.map(({ id }) => id), batch.companyId];
  const thrown = throws.find((name) => names.includes(name));
  if (thrown !== undefined) throw new Error(`Nothing can be done with ${thrown}.`);
  if (hangs.some((name) => names.includes(name))) await new Promise(() => {});
}
