import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';

const READY = /the workers run/;
const LINE = 'Redis holds jobs of another database';

async function installCompany(testApp: TestApp, name: string) {
  const company = await testApp.control.addCompany({ name, plan: 'enterprise', contacts: 300 });
  const browser = testApp.session();
  return { browser, id: await install(browser, company) };
}

const told = ({ log }: TestApp) => log.lines.filter(({ msg }) => msg === LINE);

test('a worker that is given jobs of another installation’s database says so once', async () => {
  const first = await startTestApp({ workers: false });
  const second = await startTestApp({ redisUrl: first.redisUrl });
  await waitFor(async () => (await first.app.queues.upkeep.getJobSchedulersCount()) > 0);
  const { id } = await installCompany(first, 'First');
  const jobs = async () => Object.values(await first.app.queues.syncCounts()).reduce((sum, n) => sum + n);
  await waitFor(async () => told(second).length > 0 && (await jobs()) === 0);
  expect(told(second)).toEqual([expect.objectContaining({ level: 'error', instanceId: id })]);
});

test('two installations with a number each in the addresses of one Redis do not meet', async () => {
  const { url } = await startTestRedis();
  const both = [await startTestApp({ redisUrl: `${url}/0` }), await startTestApp({ redisUrl: `${url}/1` })];
  const installs = await Promise.all(both.map((testApp, at) => installCompany(testApp, `Company ${at}`)));
  await Promise.all(installs.map(({ browser, id }) => waitForStatus(browser, id, isSynced)));
  expect(both.flatMap(told)).toEqual([]);
});

test('a process that is started on a copy of the database, with the same environment otherwise, ends, says with whom it would clash, and takes no job; when the other has ended, it starts', async () => {
  const { env, config, redisUrl } = await startTestApp({ workers: false });
  const worker = (databaseUrl = config.databaseUrl) =>
    spawnEntry('src/worker.ts', { ...env, DATABASE_URL: databaseUrl });
  const running = worker();
  await running.waitForOutput(READY);
  const source = new Sqlite(config.databaseUrl.replace('file:', ''), { readonly: true });
  const copy = join(tempDir(), 'copy.db');
  await source.backup(copy);
  source.close();

  const refused = worker(`file:${copy}`);
  expect(await refused.exited).toEqual({ code: 1, signal: null });
  expect(refused.output()).toContain(`(${running.pid} on `);
  expect(refused.output()).toContain(config.databaseUrl.replace('file:', ''));
  expect(refused.output()).toMatch(/set REDIS_URL to another Redis/);
  expect(refused.output()).not.toMatch(READY);
  expect(refused.output()).not.toContain(new URL(redisUrl).password);
  expect(running.output()).not.toContain('"level":"error"');

  // Another one of the same database may come; and who was killed keeps nobody out.
  const second = worker();
  await second.waitForOutput(READY);
  await Promise.all([running, second].map((process) => process.stop('SIGKILL')));
  await worker(`file:${copy}`).waitForOutput(READY);
});
