import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { findFreePort } from '../support/free-port.ts';
import { startScript } from '../support/spawn-entry.ts';
import { query, readSchema } from './support/database.ts';
import { createWorld } from './support/world.ts';

const NEWER = '9999-of-a-newer-version';

describe("40. Migrations run once, forward only; a process that does not know the database's schema refuses to start, and says so.", async () => {
  const world = await createWorld();
  const schemaNow = () => readSchema(world.databaseUrl);
  const addMigration = (url: string) =>
    query(url, 'insert into kysely_migration (name, timestamp) values ($1, $2)', [
      NEWER,
      new Date().toISOString(),
    ]);

  it('migrates once, when several processes start at the same time', async () => {
    const processes = await Promise.all([
      world.startWeb(),
      world.startWorker(),
      world.startWeb({ env: { PORT: String(await findFreePort()) } }),
      world.startWorker(),
    ]);
    const made = await schemaNow();
    expect(made.migrations.length).toBeGreaterThan(0);
    for (const started of processes) expect((await started.stop()).code).toBe(0);
    await (await world.startWorker()).stop();
    expect(await schemaNow()).toEqual(made);
  });

  it('refuses to start on a newer database, and says so', async () => {
    await addMigration(world.databaseUrl);
    const before = await schemaNow();
    for (const script of ['start', 'reencrypt']) {
      const older = startScript(script, world.env);
      expect((await older.exited).code, script).toBe(1);
      expect(older.output()).toContain(NEWER);
      expect(older.output()).toMatch(/newer version|does not know/);
    }
    expect(await schemaNow()).toEqual(before);
  });

  it('migrates in production as a step of its own, without which nothing starts', async () => {
    const env = { NODE_ENV: 'production', CLIENT_SECRET: randomBytes(24).toString('base64') };
    const fresh = await createWorld({ env });
    const started = startScript('web', fresh.env);
    expect((await started.exited).code).toBe(1);
    expect(started.output()).toContain('npm run migrate');
    const migrated = await fresh.run('src/cli.ts', ['migrate']);
    expect(migrated.code, migrated.output).toBe(0);
    const made = await readSchema(fresh.databaseUrl);
    expect(made.migrations.length).toBeGreaterThan(0);
    await fresh.start();
    expect((await fresh.run('src/cli.ts', ['migrate'])).code).toBe(0);
    expect(await readSchema(fresh.databaseUrl)).toEqual(made);
  });
});
