import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const WORK_MS = 20;

let calls = 0;

/** Works for a while, then appends what it got to the file of the test; one of its calls never ends. */
export async function onChanges(batch: object): Promise<void> {
  const isStuck = ++calls === Number(process.env.TEST_STUCK_AT);
  if (!isStuck) await sleep(WORK_MS);
  const call = JSON.stringify({ pid: process.pid, worker: process.ppid, at: Date.now(), isStuck, ...batch });
  // A SIGKILL may cut a line off: the next one begins anew.
  appendFileSync(process.env.TEST_REPORT ?? '', `\n${call}`);
  if (isStuck) await new Promise(() => {});
}
