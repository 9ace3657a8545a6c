import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, test } from 'vitest';
import { tempDir } from './support/temp-dir.ts';

const ROOT = join(import.meta.dirname, '..');
const TOP = [
  '.ci',
  '.env.example',
  '.gitignore',
  '.github',
  'docs',
  'monitoring',
  'jobs',
  'src',
  'test',
  'views',
  'LICENSE',
];
const FILES = ['biome.json', 'package-lock.json', 'package.json', 'tsconfig.json', 'vitest.config.ts'];
const DEPLOYMENT = ['Dockerfile', 'Procfile', 'compose.yaml'];
const PAGES = ['README.md', 'AGENTS.md', 'CONTRIBUTING.md', 'CHANGELOG.md'];

let dir = '';
const read = (path: string) => readFileSync(join(dir, path), 'utf8');
const git = (...args: string[]) => execFileSync('git', args, { cwd: dir, stdio: 'ignore' });

beforeEach(() => {
  dir = tempDir();
  for (const part of [...TOP, ...FILES, ...DEPLOYMENT, ...PAGES]) {
    cpSync(join(ROOT, part), join(dir, part), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'), 'junction');
});

/** Runs a program in the fork. @returns its exit code, and what it wrote */
async function run(...args: string[]): Promise<{ code: number; output: string }> {
  const { PATH, HOME } = process.env;
  const ended = await promisify(execFile)(process.execPath, args, { cwd: dir, env: { PATH, HOME } }).catch(
    (error) => error,
  );
  return { code: ended.code ?? 0, output: ended.stdout + ended.stderr };
}

const init = (...args: string[]) => run('.ci/init.js', ...args);

describe('npm run init', () => {
  test('gives a fork its name, and leaves what is green without benches', async () => {
    const flags = ['--name', "Ada's Sync!", '--support', 'help@ada.example', '--without', 'bench'];
    expect(await init(...flags)).toMatchObject({ code: 0, output: expect.stringContaining('ada-s-sync') });
    const { APP_INFO } = await import(join(dir, 'src/integration/app-info.ts'));
    expect(APP_INFO).toMatchObject({ name: "Ada's Sync!", support: 'help@ada.example' });
    expect(JSON.parse(read('package-lock.json')).packages[''].name).toBe('ada-s-sync');
    const left = ['CHANGELOG.md', 'test/bench', 'test/sizes.test.ts', '.ci/init.js'];
    expect(left.filter((path) => existsSync(join(dir, path)))).toEqual([]);
    expect(read('docs/deploy.md') + read('compose.yaml')).not.toMatch(/partner-app/);
    const { scripts } = JSON.parse(read('package.json'));
    expect(Object.keys(scripts).filter((name) => /init|bench/.test(name))).toEqual([]);
    const tests = ['test/integration/app-info', 'test/doc-links', 'test/readme', 'test/lock-file'];
    const suite = await run('node_modules/vitest/vitest.mjs', 'run', ...tests);
    expect(suite.output).toMatch(/Test Files .*4 passed/);
    expect((await run('node_modules/@biomejs/biome/bin/biome', 'check', 'src/integration')).code).toBe(0);
  });

  test('keeps the benches unless it is asked to remove them', async () => {
    expect(await init('--name', 'Acme Sync')).toMatchObject({ code: 0 });
    expect([existsSync(join(dir, 'test/bench')), JSON.parse(read('package.json')).name]).toEqual([
      true,
      'acme-sync',
    ]);
  });

  test.each([
    [[], '--name must be'],
    [['--name', '///'], '--name must be'],
    [['--name', 'Acme', '--support', 'nobody'], '--support must be'],
    [['--name', 'Acme', '--without', 'tests'], '--without knows'],
    [['--nmae', 'Acme'], '--nmae'],
  ])('refuses %j, and changes nothing', async (flags, why) => {
    const { code, output } = await init(...flags);
    expect(code).toBe(2);
    expect(output).toContain(why);
    expect(output).toContain('Nothing was changed.');
    expect(read('src/integration/app-info.ts')).toContain("name: 'Partner app'");
  });

  test('refuses a working tree with changes', async () => {
    git('init');
    writeFileSync(join(dir, 'new.txt'), '');
    const { code, output } = await init('--name', 'Acme Sync');
    expect([code, output]).toEqual([2, expect.stringContaining('commit them first')]);
  });
});
