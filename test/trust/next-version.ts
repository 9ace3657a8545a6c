import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempDir } from '../support/temp-dir.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The migration that the next version brings. */
export const NEXT_MIGRATION = '9000-next';

const MIGRATION = `import { sql } from 'kysely';

export async function up(db) {
  await sql\`alter table runs add column remark text\`.execute(db);
  process.stdout.write('migrating\\n');
  if (process.env.HANGS) for (;;) await new Promise((resolve) => setTimeout(resolve, 1_000));
}
`;

/**
 * Copies the app as it is, without its tests and what a fork syncs besides; what it keeps under `.data` lies in the copy.
 *
 * @returns the copy's root
 */
export function copyApp(): string {
  const root = tempDir();
  for (const path of ['src', 'jobs', 'views', 'package.json']) {
    cpSync(join(ROOT, path), join(root, path), { recursive: true });
  }
  cpSync(join(ROOT, 'test/support/usual-resources.ts'), join(root, 'src/sync/resources.ts'));
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  return root;
}

/**
 * Makes the version of the app that comes after this one: a copy of it with one resource more, one member more in its
 * jobs, and a budget that keeps more in Redis.
 *
 * @param options.migrates with a migration, too
 * @returns its root
 */
export function makeNextVersion(options: { migrates: boolean }): string {
  const root = copyApp();
  change(join(root, 'src/sync/resources.ts'), {
    'export const RESOURCES: readonly Resource[] = [': "$& { name: 'tags', title: 'Tags', route: '/tags' },",
  });
  change(join(root, 'jobs/queues.ts'), {
    'data: { instanceId, resource },': 'data: { instanceId, resource, addedBy: 9000 } as SyncJobData,',
  });
  change(join(root, 'src/client/budget/decide.lua'), {
    "redis.call('SET', state, ": "s.mood = now redis.call('SET', state .. ':mood', now, 'PX', 60000) $&",
  });
  if (options.migrates) addMigration(root, { name: NEXT_MIGRATION, as: 'next', source: MIGRATION });
  return root;
}

/**
 * Adds a migration to a copy of the app, as the README advises forks.
 *
 * @param migration.as what the module is called where it is listed
 */
export function addMigration(root: string, migration: { name: string; as: string; source: string }): void {
  const { name, as, source } = migration;
  writeFileSync(join(root, `src/store/migrations/${name}.ts`), source);
  change(join(root, 'src/store/migrate.ts'), {
    "import * as initial from './migrations/0001-initial.ts';": `$& import * as ${as} from './migrations/${name}.ts';`,
    'const MIGRATIONS: Record<string, Migration> = {': `$& '${name}': ${as},`,
  });
}

function change(path: string, changes: Record<string, string>): void {
  let source = readFileSync(path, 'utf8');
  for (const [from, to] of Object.entries(changes)) {
    if (!source.includes(from)) throw new Error(`${path} does not say ${from}`);
    source = source.replace(from, to);
  }
  writeFileSync(path, source);
}
