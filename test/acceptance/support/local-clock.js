// Loaded before an entry point: its clock differs from the right one by the milliseconds in the file TEST_CLOCK.
import { readFileSync } from 'node:fs';

const { TEST_CLOCK } = process.env;
const rightNow = Date.now.bind(Date);

Date.now = () => rightNow() + Number(readFileSync(TEST_CLOCK, 'utf8'));

globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [Date.now()] : args, newTarget),
});
