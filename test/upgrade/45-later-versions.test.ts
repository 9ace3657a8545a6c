import { writeFileSync } from 'node:fs';
import { type Kysely, sql } from 'kysely';
import { Migrator } from 'kysely/migration';
import { describe, expect, it } from 'vitest';
import { Database } from '../../src/store/database.ts';
import { openPostgres } from '../../src/store/dialect/postgres.ts';
import { openSqlite } from '../../src/store/dialect/sqlite.ts';
import { up as initial } from '../../src/store/migrations/0001-initial.ts';
import { LATER_ROWS, OLD_ROWS, rowsOf } from '../store/rows.ts';
import { newDatabaseUrl } from '../store/test-store.ts';
import { EXAMPLES } from '../support/doc-examples.ts';
import {
  changeEveryRoom,
  createFork,
  createTemplate,
  linkPackages,
  type Repository,
  release,
} from './repositories.ts';

const OWN_PACKAGE = { version: '2.0.0', integrity: 'sha512-BB==' };
/** Files of the template that `npm run init` writes, and files that are always the fork's. */
const INIT_WRITES = ['LICENSE', 'package-lock.json', 'package.json', 'src/integration/app-info.ts'];

/** A file of the template that a fork has no reason to change. */
const SOURCE = 'src/sync/schedule.ts';

/** Looks into a database, whatever its schema. */
async function look<Value>(url: string, work: (db: Database) => Promise<Value>): Promise<Value> {
  const db = new Database(url.startsWith('file:') ? openSqlite(url) : openPostgres(url, () => undefined));
  return work(db).finally(() => db.destroy());
}

async function runRows(db: Database, rows: string): Promise<void> {
  for (const statement of rows.split(';')) await sql.raw(statement).execute(db);
}

/** Makes the first schema with rows in every table. */
function fillFirstSchema(url: string): Promise<void> {
  return look(url, async (db) => {
    const first = { up: (to: Kysely<unknown>) => initial(to, db.dialect) };
    const provider = { getMigrations: async () => ({ '0001-initial': first }) };
    await new Migrator({ db, provider }).migrateToLatest();
    await runRows(db, OLD_ROWS);
  });
}

/** Gives a fork the handler, settings, table, resource, page, events and test of the docs. */
function writeExamples(fork: Repository): string[] {
  // The first handler of a page with a test of its own.
  const examples = new Map(EXAMPLES.toReversed().map(({ path, code }) => [path, code]));
  const handler = EXAMPLES.find(
    ({ page, path }) => page === 'docs/handler.md' && path.endsWith('/handler.ts'),
  );
  examples.set('src/integration/handler.ts', handler?.code ?? '');
  for (const [path, code] of examples) fork.write(path, code);
  return [...examples.keys()];
}

const newest = (fork: Repository) => fork.git('log', '-1', '--format=%s');

describe('45. A fork with a handler, a resource, a table and a view of its own takes the next version by one command, without a conflict in files that are not its own; its database migrates, and its suite is green.', () => {
  it('takes a version that changes every room', async () => {
    const template = createTemplate();
    const fork = createFork(template);
    linkPackages(fork);
    const init = ['run', 'init', '--', '--name', 'Acme Sync', '--description', 'Copies contacts to Acme.'];
    expect(await fork.run('npm', init)).toMatchObject({ code: 0 });
    const own = writeExamples(fork);
    fork.editJson('package.json', ({ scripts, dependencies }) => {
      scripts.ship = 'node ship.js';
      dependencies['own-package'] = OWN_PACKAGE.version;
    });
    fork.editJson('package-lock.json', ({ packages }) => {
      packages[''].dependencies['own-package'] = OWN_PACKAGE.version;
      packages['node_modules/own-package'] = OWN_PACKAGE;
    });
    fork.commit('Make it ours');

    const urls = [await newDatabaseUrl('sqlite'), await newDatabaseUrl('postgres')];
    const migrate = (url: string) => fork.run('npm', ['run', 'migrate'], { DATABASE_URL: url });
    const before = [];
    for (const url of urls) {
      await fillFirstSchema(url);
      expect(await migrate(url)).toMatchObject({ code: 0 });
      await look(url, (db) =>
        runRows(db, `${LATER_ROWS};insert into messages values ('ins_a', 'c', 'm', 'Hello')`),
      );
      before.push(await look(url, rowsOf));
    }
    const tables = Object.entries(before[0] ?? {});
    expect(tables.filter(([, rows]) => rows.length === 0)).toEqual([]);
    expect(tables.map(([name]) => name)).toContain('messages');

    changeEveryRoom(template);
    release(template, '1.1.0');
    const { code, output } = await fork.upgrade();
    expect(output).toContain('This fork has version 1.1.0 now');
    expect(output).toMatch(/News of 1\.1\.0\.\s+### Before you deploy\s+Do this for 1\.1\.0\./);
    expect(output).not.toMatch(/conflict|## 1\.0\.0/i);
    expect([code, fork.git('status', '--porcelain')]).toEqual([0, '']);

    const differing = fork.git('diff', '--name-only', '--no-renames', 'refs/template/tags/v1.1.0', 'HEAD');
    expect(differing.split('\n').sort()).toEqual([...new Set([...INIT_WRITES, ...own])].sort());
    const changed = fork.git(
      'diff',
      '--name-only',
      'HEAD~1',
      'HEAD',
      '--',
      'src/integration',
      'test/integration',
    );
    expect(changed).toBe('');
    const commit = template.git('rev-parse', 'v1.1.0');
    expect(JSON.parse(fork.read('package.json'))).toMatchObject({
      ...{ name: 'acme-sync', description: 'Copies contacts to Acme.', version: '1.1.0' },
      scripts: { ship: 'node ship.js' },
      dependencies: { 'added-package': '1.0.0', 'own-package': '2.0.0' },
      template: { url: template.dir, version: '1.1.0', commit },
    });
    expect(JSON.parse(fork.read('package-lock.json')).packages).toMatchObject({
      '': { name: 'acme-sync', dependencies: { 'added-package': '1.0.0', 'own-package': '2.0.0' } },
      'node_modules/own-package': OWN_PACKAGE,
    });

    for (const [at, url] of urls.entries()) {
      expect(await migrate(url)).toMatchObject({ code: 0 });
      const { notes, ...rest } = await look(url, rowsOf);
      expect([notes, rest]).toEqual([[], before[at]]);
    }
    const vitest = ['exec', 'vitest', 'run', '--', '--mode', 'quick', 'test/integration'];
    expect((await fork.run('npm', vitest)).output).toMatch(/Tests +\d+ passed \(\d+\)/);
  });

  it('names the one file that both sides changed, and goes back by git', async () => {
    const template = createTemplate();
    const fork = createFork(template);
    fork.edit(SOURCE, /\n$/, '\n// Ours.\n');
    fork.commit('Change a file of the template');
    const before = fork.git('rev-parse', 'HEAD');
    template.edit(SOURCE, /\n$/, '\n// Later.\n');
    changeEveryRoom(template);
    release(template, '1.1.0');

    const { code, output } = await fork.upgrade('1.1.0', '--from', template.dir);
    expect(code).toBe(1);
    expect(output).toContain(
      'merged, but for 1 of your changes:\n  src/sync/schedule.ts: both sides changed the same lines\n',
    );
    expect(output).toContain('git reset --hard');
    fork.git('merge', '--abort');
    expect([fork.git('rev-parse', 'HEAD'), fork.git('status', '--porcelain')]).toEqual([before, '']);
  });

  it.each([true, false])('takes version after version, with history: %s', async (hasHistory) => {
    const template = createTemplate();
    // A fork may begin between two releases.
    template.edit(SOURCE, /\n$/, '\n// Soon.\n');
    template.commit('Go on');
    const fork = createFork(template, hasHistory);
    linkPackages(fork);
    expect(
      await fork.run('npm', ['run', 'init', '--', '--name', 'Acme', '--from', template.dir]),
    ).toMatchObject({
      code: 0,
    });
    // The scripts of a fork stay: these show what runs, and take no time.
    fork.editJson('package.json', ({ scripts }) => {
      Object.assign(scripts, { check: 'echo our check', 'test:quick': 'echo our suite' });
    });
    fork.edit('README.md', /^# .*$/m, '# Acme');
    fork.commit('Make it ours');

    changeEveryRoom(template);
    template.edit(SOURCE, '// Soon.', '// Later.');
    release(template, '1.1.0');
    expect(await fork.upgrade()).toMatchObject({
      code: 0,
      output: expect.stringMatching(/our check[\s\S]*our suite/),
    });
    expect([newest(fork), fork.read('README.md').slice(0, 7)]).toEqual([
      'Take version 1.1.0 of the template',
      '# Acme\n',
    ]);
    expect(await fork.upgrade()).toMatchObject({ code: 0, output: expect.stringContaining('nothing to do') });

    // A host that squashes forgets the second parent. And a newer version brings its own script.
    fork.git('reset', '--quiet', '--soft', 'HEAD~1');
    fork.commit('Take 1.1.0');
    template.edit('.ci/upgrade.js', 'in a commit of its own', 'by the newer script');
    template.edit(SOURCE, '// Later.', '// Latest.');
    release(template, '1.2.0');
    const next = await fork.upgrade();
    expect(next).toMatchObject({
      code: 0,
      output: expect.stringContaining('version 1.2.0 now, by the newer script'),
    });
    expect(next.output).toContain('News of 1.2.0');
    expect(next.output).not.toContain('News of 1.1.0');
    expect(fork.read(SOURCE)).toContain('// Latest.');
  });

  it('takes a version again after its merge was reverted, and refuses what is not later', async () => {
    const template = createTemplate();
    const fork = createFork(template);
    linkPackages(fork);
    await fork.run('npm', ['run', 'init', '--', '--name', 'Acme', '--from', template.dir]);
    fork.editJson('package.json', ({ scripts }) => {
      Object.assign(scripts, { check: 'echo our check', 'test:quick': 'echo our suite' });
    });
    fork.commit('Make it ours');
    template.edit(SOURCE, /\n$/, '\n// A fix.\n');
    template.editJson('package.json', ({ scripts }) => Object.assign(scripts, { check: 'another check' }));
    release(template, '1.1.0');
    expect(await fork.upgrade()).toMatchObject({
      code: 0,
      output: expect.stringContaining(
        "  scripts, check: yours is echo our check, the template's another check",
      ),
    });
    fork.git('revert', '--no-edit', '-m', '1', 'HEAD');
    release(template, '1.2.0');
    expect(await fork.upgrade()).toMatchObject({ code: 0 });
    expect(fork.read(SOURCE)).toContain('// A fix.');

    const refuse = async (words: string, ...args: string[]) => {
      const before = fork.git('rev-parse', 'HEAD');
      expect(await fork.upgrade(...args)).toMatchObject({ code: 2, output: expect.stringContaining(words) });
      expect([fork.git('rev-parse', 'HEAD'), fork.git('status', '--porcelain')]).toEqual([before, '']);
    };
    expect((await fork.upgrade('1.1.0')).output).toContain('This fork has version 1.2.0');
    fork.git('branch', 'feature');
    await refuse('has no version feature', 'feature');
    template.git('checkout', '--quiet', '-b', 'old', 'v1.1.0');
    release(template, '1.3.0');
    await refuse('lacks what this fork has of the template');
    template.git('checkout', '--quiet', 'main');
    template.write('notes.db', 'of the template');
    template.git('add', '--force', 'notes.db');
    release(template, '1.4.0');
    writeFileSync(fork.path('notes.db'), 'not in git');
    await refuse('move notes.db away');
    expect(fork.read('notes.db')).toBe('not in git');
  });

  it('leaves the merge open if the check fails, and begins none over changes', async () => {
    const template = createTemplate();
    const fork = createFork(template);
    linkPackages(fork);
    fork.editJson('package.json', ({ scripts }) => Object.assign(scripts, { check: 'exit 1' }));
    fork.commit('Break the check');
    const before = fork.git('rev-parse', 'HEAD');
    changeEveryRoom(template);
    release(template, '1.1.0');

    writeFileSync(fork.path('mine.txt'), 'not committed');
    const refused = await fork.upgrade('--from', template.dir);
    expect(refused).toMatchObject({ code: 2, output: expect.stringContaining('commit them first') });
    fork.git('clean', '--quiet', '--force');
    const failed = await fork.upgrade('--from', template.dir);
    expect(failed).toMatchObject({ code: 1, output: expect.stringContaining('"npm run check" fails') });
    expect(fork.git('rev-parse', 'HEAD')).toBe(before);
    fork.git('merge', '--abort');
    expect(fork.git('status', '--porcelain')).toBe('');
  });
});
