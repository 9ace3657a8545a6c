import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { tempDir } from '../support/temp-dir.ts';

const ROOT = join(import.meta.dirname, '../..');

type Section = 'Back up' | 'Restore' | 'Delete for good';

/** The machine's own Node may be an older one, for which the parts of the app are not made. */
function withOldNode(): NodeJS.ProcessEnv {
  const dir = tempDir();
  writeFileSync(join(dir, 'node'), '#!/bin/sh\necho too old >&2\nexit 139\n', { mode: 0o755 });
  return { ...process.env, PATH: [dir, process.env.PATH].join(delimiter) };
}

/** The files that stand in the place of the page's own. */
interface Files {
  database: string;
  backup: string;
}

/**
 * What the operations page says how to back up a database, to restore it, or to free it of what was deleted, word for
 * word, but for the files.
 *
 * @returns the arguments of `sh`, and what is to be around it
 */
export function documented(section: Section, { database, backup }: Files) {
  const page = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8');
  const text = new RegExp(`^## ${section}\n([\\s\\S]*?)^## `, 'm').exec(page)?.[1] ?? '';
  const command = /```sh\n([\s\S]*?)\n *```/.exec(text)?.[1] ?? '';
  const here = command.replace('/var/lib/partner-app/app.db', '"$1"').replace(/\bbackup\.db\b/, '"$2"');
  const files = section === 'Delete for good' ? /"\$1"/ : /"\$1"[\s\S]*"\$2"/;
  if (!files.test(here)) throw new Error(`The page does not say how: ${command}`);
  // As a script has it that does something about a failure: `set -e` would not be heeded there.
  return { args: ['-c', `${here} || exit 1`, 'sh', database, backup], cwd: ROOT, env: withOldNode() };
}

/**
 * Runs that.
 *
 * @param path of a directory with commands in the place of the machine's own
 * @throws when it fails, with what it wrote
 */
export async function runDocumented(
  section: Section,
  files: Files,
  path?: string,
): Promise<{ stdout: string }> {
  const { args, cwd, env } = documented(section, files);
  if (path !== undefined) env.PATH = [path, env.PATH].join(delimiter);
  return promisify(execFile)('sh', args, { cwd, env, timeout: 30_000 });
}
