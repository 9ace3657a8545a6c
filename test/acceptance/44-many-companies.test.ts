import { Queue } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { TokenCipher } from '../../src/auth/token-cipher.ts';
import { loadConfig } from '../../src/config/config.ts';
import { keepSetting, openDatabase } from '../../src/store/open-database.ts';
import { installMany } from '../support/install-many.ts';
import { waitFor } from '../support/wait-for.ts';
import { createWorld } from './support/world.ts';

const COMPANIES = 1_000;
const LISTS = 2 * COMPANIES;
const READ_WITHIN_MS = 600_000;

describe('44. Ten thousand companies on two workers: every due run is open and queued within a minute, a small company that installs now has its first page within ten seconds, and no sweep holds an event loop for 200 ms.', async () => {
  const world = await createWorld();
  const { sandbox } = world;
  await world.startWeb();
  const byNumber = (one: number, other: number) => one - other;

  it('of a thousand companies every due run is open and has a job, ends once, and a new one does not queue behind them', {
    timeout: READ_WITHIN_MS + 120_000,
  }, async () => {
    const companies = Array.from({ length: COMPANIES }, (_, n) =>
      sandbox.company({ name: `Company ${n}`, plan: 'enterprise', contacts: 3, conversations: 2 }),
    );
    const db = await openDatabase(world.databaseUrl);
    const { tokenKeys } = loadConfig(world.env, { dataDir: world.dir });
    await installMany(db, new TokenCipher(tokenKeys), sandbox, companies, world.env.CLIENT_ID);
    const mark = sandbox.requests().at(-1)?.n ?? 0;
    const sync = new Queue('sync', {
      connection: { url: world.redis.url },
      prefix: `${await keepSetting(db, 'installation_id', '')}:bull`,
    });
    await sync.pause();
    const workers = await Promise.all([world.startWorker(), world.startWorker()]);
    const runs = db.selectFrom('runs').select(['list', 'state']).where('kind', '=', 'full');
    await waitFor(
      async () => (await sync.getJobCountByTypes()) >= LISTS,
      'a job for every list',
      READ_WITHIN_MS,
    );
    const jobs = await sync.getJobs(['waiting', 'prioritized']);
    expect(jobs.map(({ data }) => data.list).toSorted(byNumber)).toEqual(
      (await runs.where('finished_at', 'is', null).execute()).map(({ list }) => list).toSorted(byNumber),
    );
    await sync.resume();
    await sync.close();

    const newcomer = await world.installed({ name: 'Newcomer', contacts: 3, conversations: 2 });
    await world.waitForSync(newcomer.browser, newcomer.id, READ_WITHIN_MS);
    const ofHerd = db.selectFrom('lists').select('id').where('instance_id', '!=', newcomer.id);
    const isRead = async () => (await ofHerd.where('full_at', 'is not', null).execute()).length === LISTS;
    await waitFor(isRead, 'every list to be read', READ_WITHIN_MS);

    expect((await runs.where('list', 'in', ofHerd).execute()).map(({ state }) => state)).toEqual(
      Array(LISTS).fill('finished'),
    );
    const requests = sandbox.requests(mark);
    const pages = requests.filter(({ path }) => /^\/(contacts|conversations)/.test(path));
    expect(pages.filter(({ status }) => status === 429)).toEqual([]);
    const inOrder = [...new Set(pages.map(({ company_id }) => company_id))];
    expect(new Set(inOrder)).toEqual(new Set([...companies, newcomer.company].map(({ id }) => id)));
    // Otherwise its first page would have come last.
    const after = inOrder.length - inOrder.indexOf(newcomer.company.id);
    expect(after).toBeGreaterThan(COMPANIES / 10);
    expect(await db.selectFrom('instances').select('id').where('status', '!=', 'active').execute()).toEqual(
      [],
    );
    await Promise.all(workers.map((worker) => worker.stop('SIGKILL')));
    await db.destroy();
  });
});
