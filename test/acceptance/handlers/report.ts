import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Appends what it got to the file of the test, then works for a while. */
export async function onChanges(batch: object): Promise<void> {
  const call = JSON.stringify({ pid: process.pid, at: Date.now(), ...batch });
  // A SIGKILL may cut a line off: the next one begins anew.
  appendFileSync(process.env.TEST_REPORT ?? '', `\n${call}`);
  await sleep(Number(process.env.TEST_WORK_MS ?? 0));
}
