import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { parse } from 'node:path';

const manifest: { version: string } = createRequire(import.meta.url)('../../package.json');

/** What identifies a process, in its log lines and on `/ops`. */
export interface ProcessFacts {
  /** The entry point: `start`, `web`, `worker`, `demo` or `cli`. */
  process: string;
  /** Unique among all machines. */
  processId: string;
  /** Of the app, from `package.json`. */
  version: string;
}

/** Draws the id of this process: call it once. */
export function processFacts(): ProcessFacts {
  const [, entry = ''] = process.argv;
  return { process: parse(entry).name, processId: randomBytes(8).toString('hex'), version: manifest.version };
}
