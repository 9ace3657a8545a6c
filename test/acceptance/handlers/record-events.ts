import { appendFileSync } from 'node:fs';

/** Appends what it is told to the file of the test. */
export async function onEvent(event: object): Promise<void> {
  appendFileSync(process.env.TEST_REPORT ?? '', `${JSON.stringify(event)}\n`);
}
