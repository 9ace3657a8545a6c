import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Measured } from '../limit/measure.ts';

/** The rows of the bench that are in the picture. */
const PANELS = [
  { name: 'calm-40', title: 'Calm, 40 ms a page' },
  { name: 'guard', title: 'A guard of 5 requests per 100 ms, 5 ms a page' },
];

/** There is nothing to draw yet. */
export class NotMeasuredError extends Error {}

/**
 * Reads what the picture shows.
 *
 * @param dir where the bench of the limit leaves what it saw
 * @throws NotMeasuredError when it has not seen all of it
 */
export function readPanels(dir: string): { title: string; measured: Measured }[] {
  return PANELS.map(({ name, title }) => {
    try {
      const text = readFileSync(join(dir, `limit-${name}.json`), 'utf8');
      return { title, measured: JSON.parse(text) as Measured };
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
      throw new NotMeasuredError(
        `There is no row ${name} of the bench limit to draw: run npm run bench -- limit first.`,
        { cause: error },
      );
    }
  });
}
