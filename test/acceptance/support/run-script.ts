import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, spawnEntry, type TestProcess, tempDir } from './processes.ts';

const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};

/** Starts what `npm run <script>` starts, without npm. */
export function startScript(
  script: string,
  env: Record<string, string>,
  { args = [], cwd = tempDir() }: { args?: readonly string[]; cwd?: string } = {},
): TestProcess {
  const [, entry = '', own = ''] = / (src\/\S+\.ts)(.*)$/.exec(scripts[script] ?? '') ?? [];
  if (entry === '') throw new Error(`there is no script ${script}`);
  return spawnEntry(entry, env, { cwd, args: [...own.split(' ').filter((arg) => arg !== ''), ...args] });
}
