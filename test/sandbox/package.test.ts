import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { tempDir } from '../support/temp-dir.ts';

/** Has some 250 packages, so it is none of ours: its test installs it. */
const JEST = 'jest@30.5.2';
const ROOT = join(import.meta.dirname, '../..');
const PROJECT = tempDir();
const { HOME = '', PATH = '' } = process.env;
const SHELL = process.platform === 'win32';
const ENV = { HOME, NO_COLOR: '1', PATH: [dirname(process.execPath), PATH].join(delimiter) };

/** What a program writes, run in the other project. Throws with what it wrote if it fails. */
async function run(command: string, ...args: string[]): Promise<string> {
  const options = { cwd: PROJECT, env: ENV, shell: SHELL };
  const { stdout } = await promisify(execFile)(command, args, options).catch((error) => {
    throw new Error(`${command} ${args.join(' ')}\n${error.stdout}\n${error.stderr}`);
  });
  return stdout;
}

function write(file: string, text: string): void {
  mkdirSync(dirname(join(PROJECT, file)), { recursive: true });
  writeFileSync(join(PROJECT, file), text);
}

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

  test('An older Node is told which one is needed', async () => {
    const older = "Object.defineProperty(process, 'versions', { value: { node: '20.1.0' } })";
    const failed = (code: string) => run('node', '-e', `${older};${code}`).catch(String);
    const words = 'Node 22 or newer is needed, this is 20.1.0.';
    expect(await failed("require('partner-app/sandbox')")).toContain(words);
    expect(await failed("import('partner-app/sandbox')")).toContain(words);
    expect(await failed("import(process.cwd() + '/node_modules/partner-app/lib/command.js')")).toContain(
      `sandbox: ${words}`,
    );
  });

  const guide = readFileSync(join(ROOT, 'docs/sandbox.md'), 'utf8');
  const example = /```ts\n([^`]*useSandbox[\s\S]*?)```/.exec(guide)?.[1] ?? '';
  /** The documented line of a test runner in place of Vitest's in the documented test. */
  function exampleFor(runner: string): string {
    const [, line = ''] = new RegExp(String.raw`^\| ${runner} \| .(.*). \|$`, 'm').exec(guide) ?? [];
    expect(line).toContain('partner-app');
    return example.replace(/^import .*vitest.*$/gm, '').replace(/^/, `${line}\n`);
  }

  test('It runs the documented test with Vitest', async () => {
    write('contacts.test.ts', example);
    symlinkSync(join(ROOT, 'node_modules/vitest'), join(PROJECT, 'node_modules/vitest'), 'junction');
    const output = await run('node', 'node_modules/vitest/vitest.mjs', 'run', 'contacts.test.ts');
    expect(output).toMatch(/Tests +1 passed \(1\)/);
  });

  test('It runs the documented test with node:test, where the handle asserts', async () => {
    const asserted = exampleFor('node:test')
      .replace(/expect\(page._results\).*$/m, 'assert.equal(page._results.length, 100);')
      .replace('expect(sandbox).toHaveReceived(', 'sandbox.received(');
    write(
      'node.test.mjs',
      `import assert from 'node:assert';\nimport { test } from 'node:test';\n${asserted}`,
    );
    expect(await run('node', '--test', 'node.test.mjs')).toMatch(/pass 1\b/);
  });

  test('It runs the documented test with Jest, as CommonJS', async ({ annotate }) => {
    const flags = ['--no-audit', '--prefer-offline', '--fetch-retries=1', '--fetch-timeout=30000'];
    // With the certificates and proxies of this machine.
    const options = { cwd: PROJECT, env: { ...process.env, ...ENV }, shell: SHELL };
    const installed = await promisify(execFile)('npm', ['install', ...flags, JEST], options).catch(String);
    if (!existsSync(join(PROJECT, 'node_modules/jest'))) {
      expect(installed, 'only without a registry').toMatch(
        /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENOTCACHED|ETIMEDOUT/,
      );
      return void (await annotate('Jest cannot be installed here', 'NOT TRIED'));
    }
    write('jest/contacts.test.cjs', exampleFor('Jest'));
    const output = await run('node', 'node_modules/jest/bin/jest.js', '--rootDir', 'jest', '--json');
    expect(JSON.parse(output)).toMatchObject({ numPassedTests: 1, numFailedTests: 0 });
  }, 240_000);

  test('It runs the documented test of Python', async ({ annotate }) => {
    write('test_contacts.py', /```python\n([\s\S]*?)```/.exec(guide)?.[1] ?? '');
    const found = await run('python3', '-m', 'pytest', '--version').catch(String);
    if (!/pytest \d/.test(found)) {
      return void (await annotate('There is no pytest here', 'NOT TRIED'));
    }
    expect(await run('python3', '-m', 'pytest', '-q', 'test_contacts.py')).toMatch(/1 passed/);
  }, 60_000);
});
