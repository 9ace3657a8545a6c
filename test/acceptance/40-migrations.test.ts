import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { freePort } from './support/processes.ts';
import { startScript } from './support/run-script.ts';
import { createWorld } from './support/world.ts';

const NEWER = '9999-of-a-newer-version';

describe("40. Migrations run once, forward only; a process that does not know the database's schema refuses to start, and says so.", async () => {
  const world = await createWorld();
  const readSchema = () => {
    const database = new Sqlite(`${world.dir}/app.db`, { readonly: true });
    const migrations = database.prepare('select * from kysely_migration order by name').all();
    const schema = database.prepare('select type, name, sql from sqlite_master order by name').all();
    database.close();
    return { migrations, schema };
  };

  it('migrates once, when several processes start at the same time', async () => {
    const processes = await Promise.all([
      world.startWeb(),
      world.startWorker(),
      world.startWeb({ env: { PORT: String(await freePort()) } }),
      world.startWorker(),
    ]);
    const made = readSchema();
    expect(made.migrations.length).toBeGreaterThan(0);
    for (const started of processes) expect((await started.stop()).code).toBe(0);
    await (await world.startWorker()).stop();
    expect(readSchema()).toEqual(made);
  });

  it('refuses to start on a newer database, and says so', async () => {
    const database = new Sqlite(`${world.dir}/app.db`);
    database.prepare('insert into kysely_migration values (?, ?)').run(NEWER, new Date().toISOString());
    database.close();
    const before = readSchema();
    for (const script of ['web', 'worker', 'start', 'reencrypt']) {
      const older = startScript(script, world.env);
      expect((await older.exited).code, script).toBe(1);
      expect(older.output()).toContain(NEWER);
      expect(older.output()).toMatch(/newer version|does not know/);
    }
    expect(readSchema()).toEqual(before);
  });

  it('says what else helps where the database is a developer’s own', async () => {
    const env = { ...world.env, DATABASE_URL: '' };
    await (await world.startWeb({ env })).stop();
    const database = new Sqlite(`${world.dir}/.data/app.db`);
    database.prepare('insert into kysely_migration values (?, ?)').run(NEWER, new Date().toISOString());
    database.close();
    const older = startScript('web', env, { cwd: world.dir });
    expect((await older.exited).code).toBe(1);
    expect(older.output()).toContain(`you can delete ${world.dir}/.data instead`);
  });
});
