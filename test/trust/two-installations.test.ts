import { expect, test } from 'vitest';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';

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
