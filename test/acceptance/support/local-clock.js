// Loaded before an entry point: its clock differs from the right one by the milliseconds in the file TEST_CLOCK.
import { readFileSync } from 'node:fs';

const { TEST_CLOCK } = process.env;
const rightNow = Date.now.bind(Date);

/** The file is empty for a moment when it is written. */
let aheadMs = 0;

Date.now = () => {
  const text = readFileSync(TEST_CLOCK, 'utf8');
  if (text !== '') aheadMs = Number(text);
  return rightNow() + aheadMs;
};

globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [Date.now()] : args, newTarget),
});
