import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { findFreePort } from '../support/free-port.ts';
import { startOldRedis } from '../support/old-redis.ts';
import { type EntryProcess, spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';
import { makeNextVersion, NEXT_MIGRATION } from './next-version.ts';

// Many processes start: on a machine that has other work, that takes its time.
vi.setConfig({ testTimeout: 60_000 });

/** A deploy that goes wrong: a newer version, which has a migration, cannot start beside the one that runs. */
const { config, env } = await startTestApp({ workers: false });
const another = await startTestApp({ workers: false });
const oldRedis = await startOldRedis();
const next = makeNextVersion({ migrates: true });
const unloadable = makeNextVersion({ migrates: true });
for (const part of ['web-app', 'health-app']) {
  appendFileSync(join(unloadable, `src/web/${part}.ts`), "\nthrow new Error('a part is missing');\n");
}
const misnamed = makeNextVersion({ migrates: true });
appendFileSync(
  join(misnamed, 'src/sync/resources.ts'),
  "\n(RESOURCES as Resource[]).push({ name: 'crm:teammates', title: 'Teammates', route: '/teammates' });\n",
);

const [webPort, workerPort, freePort] = [await findFreePort(), await findFreePort(), await findFreePort()];

const reader = new Sqlite(config.databaseUrl.replace('file:', ''), { readonly: true });
afterAll(() => void reader.close());
const migrations = () => reader.prepare('select name from kysely_migration order by name').pluck().all();

let running: EntryProcess[];
beforeAll(async () => {
  running = [
    spawnEntry('src/web.ts', { ...env, PORT: String(webPort) }),
    spawnEntry('src/worker.ts', { ...env, WORKER_PORT: String(workerPort) }),
  ];
  await running[0]?.waitForOutput(/the web app listens/);
  await running[1]?.waitForOutput(/the workers run/);
  await spawnEntry('src/worker.ts', another.env).waitForOutput(/the workers run/);
});

test.each<[string, string, Record<string, string>, RegExp, string?]>([
  ['web whose port is taken', 'src/web.ts', { PORT: `${webPort}` }, /Port \d+ is in use.*set PORT/],
  ['worker whose port is taken', 'src/worker.ts', { WORKER_PORT: `${workerPort}` }, /set WORKER_PORT/],
  ['start whose port is taken', 'src/start.ts', { PORT: `${webPort}` }, /Port \d+ is in use.*set PORT/],
  ['reencrypt before the app', 'src/reencrypt.ts', {}, /Start the app of this version first/],
  ['worker without Redis', 'src/worker.ts', { REDIS_URL: 'redis://127.0.0.1:9' }, /Redis .* not migrated/],
  ['worker with a Redis too old', 'src/worker.ts', { REDIS_URL: oldRedis }, /not migrated.*Redis version/],
  [
    'worker with the Redis of another installation',
    'src/worker.ts',
    { REDIS_URL: another.redisUrl },
    /works on the same Redis with the database/,
  ],
  ['worker with a wrong variable', 'src/worker.ts', { PUBLIC_URL: 'app.example' }, /PUBLIC_URL/],
  ['worker with a resource that cannot be', 'src/worker.ts', {}, /"crm:teammates" has to begin/, misnamed],
  ['web that does not load', 'src/web.ts', { PORT: `${freePort}` }, /a part is missing/, unloadable],
  ['start that does not load', 'src/start.ts', { PORT: `${freePort}` }, /a part is missing/, unloadable],
  [
    'worker whose health checks do not load',
    'src/worker.ts',
    { WORKER_PORT: `${freePort}` },
    /a part is missing/,
    unloadable,
  ],
])(
  'a newer version that cannot start (%s) says so, migrates nothing, and the one that runs goes on',
  async (_what, entry, more, reason, root = next) => {
    const known = migrations();
    const version = reader.pragma('schema_version');
    const failed = spawnEntry(entry, { ...env, ...more }, { root });
    expect(await failed.exited).toEqual({ code: 1, signal: null });
    expect(failed.output()).toMatch(reason);
    expect([migrations(), reader.pragma('schema_version')]).toEqual([known, version]);
    for (const port of [webPort, workerPort]) {
      expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);
    }
  },
);

test('one that can start, right afterwards, migrates, and takes the place of the one that runs', async () => {
  expect(migrations()).not.toContain(NEXT_MIGRATION);
  const newer = spawnEntry('src/web.ts', { ...env, PORT: String(freePort) }, { root: next });
  await newer.waitForOutput(/the web app listens/);
  expect(migrations()).toContain(NEXT_MIGRATION);
  expect((await Promise.all(running.map(({ exited }) => exited))).map(({ code }) => code)).toEqual([1, 1]);
  expect((await fetch(`http://127.0.0.1:${freePort}/readyz`)).status).toBe(200);
});
