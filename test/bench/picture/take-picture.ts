import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RESULTS_DIR } from '../limit/limit.ts';
import type { Measured } from '../limit/measure.ts';
import { drawLimit } from './draw-limit.ts';

const PICTURE = join(import.meta.dirname, '../../../docs/images/limit.svg');

/** The rows of the bench that are in the picture. */
const PANELS = [
  { name: 'calm-40', title: 'Calm, 40 ms a page' },
  { name: 'guard', title: 'A guard of 5 requests per 100 ms, 5 ms a page' },
];

const panels = PANELS.map(({ name, title }) => {
  const file = join(RESULTS_DIR, `limit-${name}.json`);
  try {
    return { title, measured: JSON.parse(readFileSync(file, 'utf8')) as Measured };
  } catch (error) {
    throw new Error(`Run the bench first: npm run bench -- limit:${name}`, { cause: error });
  }
});
writeFileSync(PICTURE, drawLimit(panels));
process.stdout.write(`${PICTURE}\n`);
