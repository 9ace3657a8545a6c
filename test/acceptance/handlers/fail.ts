import { readFileSync } from 'node:fs';
import type { Call } from '../support/handler-report.ts';
import { onChanges as report } from './report.ts';

/** Keeps the event loop as a computation does, and leaves the CPU to others. */
const block = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** What a handler may do wrong, by the name in the test's file. */
const FAULTS: Record<string, (name: string) => unknown> = {
  throws(name) {
    throw new Error(`Nothing can be done with ${name}.`);
  },
  hangs: () => new Promise(() => {}),
  rejects(name) {
    void Promise.reject(new Error(`Nobody hears of ${name}.`));
  },
  exits: () => process.exit(3),
  breaks: () =>
    new Promise(() => {
      setTimeout(() => {
        throw new Error('It broke in a callback.');
      });
    }),
  fills() {
    for (const kept: unknown[] = []; ; ) kept.push(Array.from({ length: 1_000 }, () => ({})));
  },
  buffers() {
    for (const kept: unknown[] = []; ; ) kept.push(Buffer.alloc(1_000_000, 1));
  },
  loops() {
    for (;;) block(100);
  },
  holds: () => () => {
    for (;;) block(100);
  },
  /** For longer than a job's lock lasts. */
  computes: () => block(5_000),
};

/** Fails as the file of the test says, which may change meanwhile: for some records, or for all of a company. */
export async function onChanges(batch: Call): Promise<unknown> {
  await report(batch);
  const failing = JSON.parse(readFileSync(process.env.TEST_FAILURES ?? '', 'utf8'));
  const names = [...batch.changes.map(({ id }) => id), batch.companyId ?? ''];
  for (const [fault, cause] of Object.entries(FAULTS)) {
    const name = names.find((one) => failing[fault]?.includes(one));
    if (name !== undefined) return cause(name);
  }
  return undefined;
}
