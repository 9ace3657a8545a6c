import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { tempDir } from '../support/temp-dir.ts';

const ROOT = join(import.meta.dirname, '../..');
const PROJECT = tempDir();
const { HOME = '', PATH = '' } = process.env;
const ENV = { HOME, NO_COLOR: '1', PATH: [dirname(process.execPath), PATH].join(delimiter) };

/** What a program writes, run in the other project. Throws with what it wrote if it fails. */
async function run(command: string, ...args: string[]): Promise<string> {
  const options = { cwd: PROJECT, env: ENV, shell: process.platform === 'win32' };
  const { stdout } = await promisify(execFile)(command, args, options).catch((error) => {
    throw new Error(`${command} ${args.join(' ')}\n${error.stdout}\n${error.stderr}`);
  });
  return stdout;
}

const write = (file: string, text: string) => writeFileSync(join(PROJECT, file), text);

beforeAll(async () => {
  await run('node', join(ROOT, '.ci/build-sandbox.js'));
  await run('npm', 'pack', join(ROOT, 'dist/sandbox'));
  write('package.json', '{"type": "module"}');
  const [packed = ''] = readdirSync(PROJECT).filter((file) => file.endsWith('.tgz'));
  await run('npm', 'install', '--offline', '--no-audit', `./${packed}`);
}, 120_000);

describe('The package, in another project', () => {
  test('It brings everything along, and a command to read a page of contacts with', async () => {
    const packages = readdirSync(join(PROJECT, 'node_modules')).filter((name) => !name.startsWith('.'));
    expect(packages).toEqual(['partner-app']);
    const command = join(PROJECT, 'node_modules/.bin/partner-sandbox');
    const stdio = ['ignore', 'pipe', 'inherit'] as const;
    const child = spawn(command, ['--port', '0', '--json'], { env: ENV, stdio: [...stdio] });
    onTestFinished(() => void child.kill());
    const [line] = await once(createInterface(child.stdout), 'line');
    const { origin, api_url, companies } = JSON.parse(line);
    const headers = { authorization: `Bearer ${companies[0].api_tokens[0].token}` };
    const page = await (await fetch(`${api_url}/contacts?limit=20`, { headers })).json();
    expect(page).toMatchObject({ _results: Array(20).fill({ id: expect.any(String) }) });
    for (const path of ['/', '/panel.js', '/panel.css', '/idiomorph.esm.js', '/_sandbox/openapi.json']) {
      expect((await fetch(origin + path)).status, path).toBe(200);
    }
  });

  test('It has a handle, with types that need no other package', async () => {
    write(
      'script.ts',
      `import { createSandbox, type Seed, type TokenAnswer } from 'partner-app/sandbox';
      import type { useSandbox } from 'partner-app/sandbox/vitest';
      const seed: Seed = { companies: [{ name: 'Acme', plan: 'enterprise', addon_rpm: 10 }] };
      const sandbox = await createSandbox({ seed, readings: { expiresAt: 'iso' } });
      const tokens: TokenAnswer = sandbox.tokens(sandbox.application, sandbox.companies()[0]);
      const id: string = sandbox.faults.order({ match: { nth: 2 }, fault: { headers: { 'retry-after': 2 } } });
      export const used = (use: typeof useSandbox) => use({ windowMs: 1 }).clock.now() satisfies number;
      // @ts-expect-error: there is no such plan
      export const wrong = () => sandbox.company({ name: 'Acme', plan: 'large' });
      declare const console: { log(...words: unknown[]): void };
      console.log(id, tokens.token_type, sandbox.state().companies[0]?.name);
      await sandbox.close();`,
    );
    const options = { strict: true, exactOptionalPropertyTypes: true, noEmit: true, types: [] };
    const compilerOptions = { ...options, module: 'NodeNext', target: 'ES2022', lib: ['ES2022'] };
    write('tsconfig.json', JSON.stringify({ compilerOptions, files: ['script.ts'] }));
    expect(await run('node', join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', '.')).toBe('');
    expect(await run('node', 'script.ts')).toMatch(/^flt_\w+ Bearer Acme\n$/);
  });

  test('It runs the test that its documentation begins with', async () => {
    const guide = readFileSync(join(ROOT, 'docs/sandbox.md'), 'utf8');
    write('contacts.test.ts', /```ts\n([^`]*useSandbox[\s\S]*?)```/.exec(guide)?.[1] ?? '');
    symlinkSync(join(ROOT, 'node_modules/vitest'), join(PROJECT, 'node_modules/vitest'), 'junction');
    const output = await run('node', 'node_modules/vitest/vitest.mjs', 'run');
    expect(output).toMatch(/Tests +1 passed \(1\)/);
  });
});
