import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RESULTS_DIR } from '../limit/limit.ts';
import { drawLimit } from './draw-limit.ts';
import { NotMeasuredError, readPanels } from './read-panels.ts';

const PICTURE = join(import.meta.dirname, '../../../docs/images/limit.svg');

try {
  writeFileSync(PICTURE, drawLimit(readPanels(RESULTS_DIR)));
  process.stdout.write(`${PICTURE}\n`);
} catch (error) {
  if (!(error instanceof NotMeasuredError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
