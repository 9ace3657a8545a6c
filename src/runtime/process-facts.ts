import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { parse } from 'node:path';

const manifest: { version: string } = createRequire(import.meta.url)('../../package.json');

/** Which process this is: they join log lines with the worker on `/ops`. */
export interface ProcessFacts {
  /** The entry point: `start`, `web`, `worker`, `demo` or `cli`. */
  process: string;
  /** Unlike that of any other process, also on other machines. */
  processId: string;
  /** Of the app, from `package.json`. */
  version: string;
}

/** Draws the id of this process; to be called once a process. */
export function processFacts(): ProcessFacts {
  const [, entry = ''] = process.argv;
  return { process: parse(entry).name, processId: randomBytes(8).toString('hex'), version: manifest.version };
}
