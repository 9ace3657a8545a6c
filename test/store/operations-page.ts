import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');

/**
 * Runs what the operations page says how to back up a database or to restore it, word for word, but for the files.
 *
 * @throws when it fails, with what it wrote
 */
export async function runDocumented(
  section: 'Back up' | 'Restore',
  files: { database: string; backup: string },
): Promise<{ stdout: string }> {
  const page = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8');
  const text = new RegExp(`^## ${section}\n([\\s\\S]*?)^## `, 'm').exec(page)?.[1] ?? '';
  const command = /```sh\n([\s\S]*?)\n *```/.exec(text)?.[1] ?? '';
  const here = command.replace('/var/lib/partner-app/app.db', '"$1"').replace(/\bbackup\.db\b/, '"$2"');
  if (!/"\$1".*"\$2"/.test(here)) throw new Error(`The page does not say how: ${command}`);
  const { database, backup } = files;
  return promisify(execFile)('sh', ['-c', here, 'sh', database, backup], { cwd: ROOT, timeout: 30_000 });
}
