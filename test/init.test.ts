import { execFile, execFileSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, test } from 'vitest';
import { tempDir } from './support/temp-dir.ts';

const ROOT = join(import.meta.dirname, '..');
const PARTS = [
  '.ci/init.js',
  'src/integration',
  'test/integration',
  'LICENSE',
  'biome.json',
  'vitest.config.ts',
];
const MANIFESTS = ['package.json', 'package-lock.json'];
const NEEDED_BY_CONFIG = ['src/runtime', 'test/support'];
const WRITTEN = ['LICENSE', ...MANIFESTS.toReversed(), 'src/integration/app-info.ts'];
const IDENTITY = ['-c', 'user.name=Ada', '-c', 'user.email=ada@acme.example'];

let dir = '';
const read = (path: string) => readFileSync(join(dir, path), 'utf8');
const git = (...args: string[]) =>
  execFileSync('git', [...IDENTITY, ...args], { cwd: dir, encoding: 'utf8', stdio: 'pipe' }).trim();

beforeEach(() => {
  dir = tempDir();
  for (const part of [...PARTS, ...MANIFESTS, ...NEEDED_BY_CONFIG]) {
    cpSync(join(ROOT, part), join(dir, part), { recursive: true });
  }
  const { template, ...fresh } = JSON.parse(read('package.json'));
  writeFileSync(join(dir, 'package.json'), `${JSON.stringify(fresh, null, 2)}\n`);
  writeFileSync(join(dir, '.gitignore'), 'node_modules\n');
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'), 'junction');
  git('init', '--quiet');
  commit();
});

function commit(): string {
  git('add', '--all');
  git('commit', '--quiet', '--message', 'Commit');
  return git('rev-parse', 'HEAD');
}

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
  test('names a fork in four files, notes where it comes from, and says so', async () => {
    git('remote', 'add', 'origin', 'https://ada:secret@git.example/acme/sync.git');
    const { version } = JSON.parse(read('package.json'));
    const made = git('rev-parse', 'HEAD');
    const description = `Copies "contacts" to Ada's systems, ${'and much more, '.repeat(5)}every day.`;
    const flags = ['--name', "Ada's Sync!", '--description', description, '--support', 'help@ada.example'];
    const { code, output } = await init(...flags, '--holder', 'Ada Ltd');
    expect([code, output]).toEqual([0, expect.stringContaining(`made from version ${version}`)]);
    for (const file of WRITTEN) expect(output).toContain(file);
    expect(git('diff', '--name-only').split('\n')).toEqual(WRITTEN);

    const { APP_INFO } = await import(join(dir, 'src/integration/app-info.ts'));
    expect(APP_INFO).toMatchObject({ name: "Ada's Sync!", description, support: 'help@ada.example' });
    const template = { url: 'https://git.example/acme/sync.git', version, commit: made };
    expect(JSON.parse(read('package.json'))).toMatchObject({ name: 'ada-s-sync', description, template });
    expect(JSON.parse(read('package-lock.json')).packages[''].name).toBe('ada-s-sync');
    const [notice = '', own = ''] = read('LICENSE').match(/^Copyright.*$/gm) ?? [];
    expect([notice, own]).toEqual([expect.stringMatching(/authors$/), expect.stringMatching(/Ada Ltd$/)]);

    const suite = await run('node_modules/vitest/vitest.mjs', 'run', 'test/integration/app-info');
    expect(suite.output).toMatch(/Test Files .*1 passed/);
    const check = ['check', 'src/integration', 'package.json'];
    expect(await run('node_modules/@biomejs/biome/bin/biome', ...check)).toMatchObject({ code: 0 });
  });

  test('may run again, with other words and the same origin', async () => {
    await init('--name', 'Acme', '--from', 'https://ada:secret@git.example/template.git');
    const { template } = JSON.parse(read('package.json'));
    commit();
    expect(await init('--name', 'Acme Sync', '--holder', 'Acme Ltd')).toMatchObject({ code: 0 });
    expect(JSON.parse(read('package.json'))).toMatchObject({ name: 'acme-sync', template });
    expect(template.url).toBe('https://git.example/template.git');
    expect(read('LICENSE').match(/^Copyright.*$/gm)).toHaveLength(2);
    commit();
    const again = await init('--name', 'Acme Sync', '--holder', 'Acme Ltd');
    expect(again.output).toContain('Changed: nothing.');
    expect(git('status', '--porcelain')).toBe('');
  });

  test.each([
    [[], '--name must be'],
    [['--name', '///'], '--name must be'],
    [['--name', 'Acme', '--support', 'nobody'], '--support must be'],
    [['--name', 'Acme', '--description', 'two\nlines'], '--description and --holder must be'],
    [['--nmae', 'Acme'], '--nmae'],
  ])('refuses %j, and changes nothing', async (flags, why) => {
    const { code, output } = await init(...flags);
    expect(code).toBe(2);
    expect(output).toContain(why);
    expect(output).toContain('Nothing was changed.');
    expect(git('status', '--porcelain')).toBe('');
  });

  test('refuses a working tree with changes', async () => {
    writeFileSync(join(dir, 'new.txt'), '');
    const { code, output } = await init('--name', 'Acme Sync');
    expect([code, output]).toEqual([2, expect.stringContaining('commit them first')]);
  });
});
