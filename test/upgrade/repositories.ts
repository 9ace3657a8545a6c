import { execFile, execFileSync } from 'node:child_process';
import {
  cpSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { devNull } from 'node:os';
import { dirname, extname, join } from 'node:path';
import { promisify } from 'node:util';
import { tempDir } from '../support/temp-dir.ts';

const ROOT = join(import.meta.dirname, '../..');
/** What a working copy has besides the files of the project. */
const NOT_COPIED = ['node_modules', '.git', 'dist', '.data', '.env'];

const { PATH = '', HOME = '' } = process.env;
const PERSON = { GIT_AUTHOR_NAME: 'Ada', GIT_AUTHOR_EMAIL: 'ada@acme.example' };
const COMMITTER = { GIT_COMMITTER_NAME: 'Ada', GIT_COMMITTER_EMAIL: 'ada@acme.example' };
/** npm compares package.json with the lock file, and installs nothing: node_modules is there. */
const NPM = { npm_config_dry_run: 'true', npm_config_offline: 'true', npm_config_ignore_scripts: 'true' };
const ENV = { PATH, HOME, NO_COLOR: '1', GIT_CONFIG_GLOBAL: devNull, ...PERSON, ...COMMITTER, ...NPM };

/** A package that a later version needs. */
const ADDED = { name: 'added-package', version: '1.0.0', type: 'module', exports: './index.js' };

/** Files of every room that a later version changes. */
const CHANGED = [
  ...['auth', 'changes', 'config', 'contract', 'runtime', 'sandbox', 'service', 'store', 'sync', 'web'].map(
    (room) => `src/${room}/*.ts`,
  ),
  ...['jobs/*.ts', 'test/store/*.test.ts', 'test/web/*.test.ts', 'test/support/*.ts', '.ci/*.js'],
  ...['docs/handler.md', 'README.md', 'compose.yaml', 'Dockerfile', 'monitoring/alerts.yml'],
];
const RENAMED = ['src/runtime/company-finder.ts', 'src/runtime/companies-by-id.ts'] as const;

const COMMENTS: Record<string, string> = { '.ts': '// Later.', '.js': '// Later.', '.md': '\nLater.' };

/** A repository of a test. */
export class Repository {
  readonly dir = tempDir();

  path(file: string): string {
    return join(this.dir, file);
  }

  read(file: string): string {
    return readFileSync(this.path(file), 'utf8');
  }

  write(file: string, text: string): void {
    mkdirSync(dirname(this.path(file)), { recursive: true });
    writeFileSync(this.path(file), text);
  }

  edit(file: string, from: string | RegExp, to: string): void {
    const text = this.read(file);
    const edited = text.replace(from, () => to);
    if (edited === text) throw new Error(`${file} has no ${from}`);
    this.write(file, edited);
  }

  /** Changes package.json or the lock file. */
  // biome-ignore lint/suspicious/noExplicitAny: of any shape.
  editJson(file: string, change: (content: any) => void): void {
    const content = JSON.parse(this.read(file));
    change(content);
    this.write(file, `${JSON.stringify(content, null, 2)}\n`);
  }

  git(...args: string[]): string {
    return execFileSync('git', args, { cwd: this.dir, env: ENV, encoding: 'utf8', stdio: 'pipe' }).trim();
  }

  commit(message: string): void {
    this.git('add', '--all');
    this.git('commit', '--quiet', '--message', message);
  }

  /** Runs a program. @returns its exit code, and what it wrote */
  async run(
    command: string,
    args: readonly string[],
    env: Record<string, string> = {},
  ): Promise<{ code: number; output: string }> {
    const options = { cwd: this.dir, env: { ...ENV, ...env }, maxBuffer: 2 ** 30 };
    const ended = await promisify(execFile)(command, args, options).catch((error) => error);
    return { code: ended.code ?? 0, output: `${ended.stdout}${ended.stderr}` };
  }

  /** Runs `npm run upgrade`, as a person does. */
  upgrade(...args: string[]): Promise<{ code: number; output: string }> {
    return this.run('npm', ['run', 'upgrade', '--', ...args]);
  }
}

function copyProject(to: string): void {
  for (const entry of readdirSync(ROOT).filter((name) => !NOT_COPIED.includes(name)))
    cpSync(join(ROOT, entry), join(to, entry), { recursive: true });
}

/** The template as it is, released as 1.0.0. */
export function createTemplate(): Repository {
  const template = new Repository();
  copyProject(template.dir);
  template.git('init', '--quiet', '--initial-branch=main');
  template.editJson('package.json', (content) => Object.assign(content, { version: '1.0.0' }));
  template.editJson('package-lock.json', (content) => {
    content.version = '1.0.0';
    content.packages[''].version = '1.0.0';
  });
  template.write('CHANGELOG.md', template.read('CHANGELOG.md').replace(/^## .*$/m, '## 1.0.0, 2026'));
  template.commit('Release 1.0.0');
  template.git('tag', 'v1.0.0');
  return template;
}

/** Releases a version: in CHANGELOG.md and package.json, with a tag. */
export function release(template: Repository, version: string): void {
  template.edit(
    'CHANGELOG.md',
    /^(?=## )/m,
    `## ${version}, 2027\n\nNews of ${version}.\n\n### Before you deploy\n\nDo this for ${version}.\n\n`,
  );
  template.editJson('package.json', (content) => Object.assign(content, { version }));
  template.editJson('package-lock.json', (content) => {
    content.version = version;
    content.packages[''].version = version;
  });
  template.commit(`Release ${version}`);
  template.git('tag', `v${version}`);
}

/** Changes twenty files, adds a migration and a package, renames a file, and edits its own example of resources. */
export function changeEveryRoom(template: Repository): void {
  for (const pattern of CHANGED) {
    const [file = pattern] = globSync(pattern, { cwd: template.dir }).sort();
    template.write(file, `${template.read(file)}${COMMENTS[extname(file)] ?? '# Later.'}\n`);
  }
  template.git('mv', ...RENAMED);
  const names = RENAMED.map((path) => path.replace(/^.*\//, ''));
  for (const file of template.git('grep', '--files-with-matches', names[0] ?? '', 'src', 'test').split('\n'))
    template.write(file, template.read(file).replaceAll(names[0] ?? '', names[1] ?? ''));
  template.edit('src/integration/resources.ts', "title: 'Name'", "title: 'Full name'");

  const table = "  await db.schema.createTable('notes').addColumn('id', 'text').execute();";
  const up = `export async function up(db: Kysely<unknown>): Promise<void> {\n${table}\n}\n`;
  const typed = "import type { Kysely } from 'kysely';";
  template.write('src/store/migrations/8000-notes.ts', `${typed}\n\n${up}`);
  const migrate = 'src/store/migrate.ts';
  const last = "import type { Schema } from './schema.ts';";
  template.edit(migrate, last, `import * as notes from './migrations/8000-notes.ts';\n${last}`);
  template.edit(migrate, "    '0001-initial': {", "    '8000-notes': notes,\n    '0001-initial': {");

  template.editJson('package.json', ({ dependencies }) => {
    dependencies[ADDED.name] = ADDED.version;
  });
  template.editJson('package-lock.json', ({ packages }) => {
    packages[''].dependencies[ADDED.name] = ADDED.version;
    packages[`node_modules/${ADDED.name}`] = { version: ADDED.version, integrity: 'sha512-AA==' };
  });
  template.write('src/runtime/added.ts', `export { added } from '${ADDED.name}';\n`);
  const imports =
    "import { expect, test } from 'vitest';\nimport { added } from '../../src/runtime/added.ts';";
  const body = "test('a package of a later version is there', () => {\n  expect(added).toBe(true);\n});";
  template.write('test/contract/added.test.ts', `${imports}\n\n${body}\n`);
}

/** A fork of the template: a clone, or files without the template's history. */
export function createFork(template: Repository, hasHistory = true): Repository {
  const fork = new Repository();
  fork.git('clone', '--quiet', template.dir, '.');
  if (!hasHistory) {
    rmSync(fork.path('.git'), { recursive: true });
    fork.git('init', '--quiet', '--initial-branch=main');
    fork.commit('Begin');
  }
  return fork;
}

/** Links the packages of this project, and makes the one that a later version needs. */
export function linkPackages({ dir }: Repository): void {
  const packages = join(dir, 'node_modules');
  mkdirSync(join(packages, ADDED.name), { recursive: true });
  for (const entry of readdirSync(join(ROOT, 'node_modules'))) {
    const isPackage = !entry.startsWith('.') || entry === '.bin';
    if (isPackage) symlinkSync(join(ROOT, 'node_modules', entry), join(packages, entry), 'junction');
  }
  writeFileSync(join(packages, ADDED.name, 'package.json'), JSON.stringify(ADDED));
  writeFileSync(join(packages, ADDED.name, 'index.js'), 'export const added = true;\n');
  writeFileSync(join(packages, ADDED.name, 'index.d.ts'), 'export declare const added: true;\n');
}
