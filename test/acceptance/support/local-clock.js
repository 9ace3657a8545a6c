// Loaded before an entry point: its clock differs from the right one by TEST_CLOCK, milliseconds or a file that holds them.
import { readFileSync } from 'node:fs';

const { TEST_CLOCK } = process.env;
const isFile = !/^-?\d+$/.test(TEST_CLOCK);
const rightNow = Date.now.bind(Date);

let aheadMs = isFile ? 0 : Number(TEST_CLOCK);

Date.now = () => {
  const text = isFile ? readFileSync(TEST_CLOCK, 'utf8') : '';
  // The file is empty for a moment when it is written.
  if (text !== '') aheadMs = Number(text);
  return rightNow() + aheadMs;
};

globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [Date.now()] : args, newTarget),
});
