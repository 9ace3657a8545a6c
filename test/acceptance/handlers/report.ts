import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const WORK_MS = 20;

let calls = 0;

/** Appends what it got to the file of the test, then works for a while; one of its calls never ends. */
export async function onChanges(batch: object): Promise<void> {
  const isStuck = ++calls === Number(process.env.TEST_STUCK_AT);
  const call = JSON.stringify({ pid: process.pid, at: Date.now(), isStuck, ...batch });
  // A SIGKILL may cut a line off: the next one begins anew.
  appendFileSync(process.env.TEST_REPORT ?? '', `\n${call}`);
  await (isStuck ? new Promise(() => {}) : sleep(WORK_MS));
}
