import { setTimeout as sleep } from 'node:timers/promises';
import { HANDLER_CONSUMER, SEARCH_CONSUMER } from '../../src/store/changes.ts';
import type { Database } from '../../src/store/database.ts';
import { median, type Row, sum, table } from './report.ts';
import type { Bench } from './run.ts';
import { askedDatabases, awaitRuns, bareLists, type DatabaseKind, openStage, stop } from './stage.ts';

const SIZES = [100, 500, 2_000];
/** More than a worker comes to. A list costs nothing until it is read. */
const LISTS = { contacts: 1_000_000, conversations: 1_000_000 };
const FIVE_PAGES = { contacts: 450, conversations: 0 };
const ARRIVALS = 7;
const AT_ONCE = 50;
const BARE_MS = 30_000;
/** Not counted: the start of all companies. */
const RAMP_MS = 10_000;
const MEASURED_MS = 170_000;

/**
 * Many companies at once in one worker process, after the bare loop over as many companies. `scale:500,latency40,postgres`
 * asks for one size, a service that answers after 40 ms, and a database.
 */
export const scale: Bench = async (write, rows) => {
  const asked = rows.filter((row) => /^\d+$/.test(row)).map(Number);
  const latencyMs = Number(rows.find((row) => /^latency\d+$/.test(row))?.slice('latency'.length) ?? 0);
  for (const kind of askedDatabases(rows, ['sqlite'])) {
    const lines: Row[] = [];
    for (const size of asked.length === 0 ? SIZES : asked) {
      for (const isWhole of [false, true]) lines.push(await measure(kind, size, latencyMs, isWhole));
    }
    write(`companies at once in one worker process on ${kind}, ${latencyMs} ms of latency. The search index is written at the end of a run, which only the small companies reach.
Ratio: to the pages of the bare loop (goal: 0.75). Shares: of an even part of all pages. A slice is ten pages, so ten more or fewer than others is even.
A company of five pages: from its install to the end of its first sync, median of ${ARRIVALS} (goal: 3 times).

${table(lines)}

`);
  }
};

async function measure(kind: DatabaseKind, size: number, latencyMs: number, isWhole: boolean): Promise<Row> {
  await using stage = await openStage({ kind, latencyMs });
  const { sandbox, app, db } = stage;
  const arrive = async (): Promise<number> => {
    const company = stage.addCompany(FIVE_PAGES);
    const startedAt = performance.now();
    const id = await stage.install(company);
    await app.control.syncNow(id);
    await awaitRuns(db, id);
    return performance.now() - startedAt;
  };
  const startWorker = () => (isWhole ? stage.startWorker() : stage.startPlainWorker());
  const idle = await startWorker();
  // The first one is slower: its code is not compiled yet.
  await arrive();
  const alone: number[] = [];
  while (alone.length < ARRIVALS) alone.push(await arrive());
  await stop(idle);

  const companies = Array.from({ length: size }, () => stage.addCompany(LISTS));
  const lists = bareLists(sandbox.apiUrl, companies);
  const databaseUrl = await stage.createDatabase();
  const bare = await stage.startBareLoop()({ databaseUrl, lists, atOnce: AT_ONCE, forMs: BARE_MS });

  const instances: string[] = [];
  for (const company of companies) instances.push(await stage.install(company));
  for (const id of instances) await app.control.syncNow(id);
  await startWorker();
  await sleep(RAMP_MS);
  const begin = { at: performance.now(), pages: await pagesOfEach(db) };
  const until = (moment: number) => sleep(Math.max(0, begin.at + moment - performance.now()));
  const among: number[] = [];
  while (among.length < ARRIVALS) {
    await until(((among.length + 1) * MEASURED_MS) / (ARRIVALS + 1));
    among.push(await arrive());
  }
  await until(MEASURED_MS);
  const elapsedMs = performance.now() - begin.at;
  await stage.checkConsumers(isWhole ? [HANDLER_CONSUMER, SEARCH_CONSUMER] : []);
  const pages = await pagesOfEach(db);
  const copied = instances.map((id) => pages.get(id) ?? 0);
  const total = sum(copied) - sum(instances.map((id) => begin.pages.get(id) ?? 0));
  const share = (one: number) => `${((100 * one * size) / sum(copied)).toFixed(1)} %`;
  const rates = { worker: (total / elapsedMs) * 1_000, bare: (bare.pages / bare.wallMs) * 1_000 };
  return {
    companies: size,
    'search and deliveries': isWhole ? 'with' : 'without',
    'pages/s': rates.worker,
    'bare loop, pages/s': rates.bare,
    ratio: (rates.worker / rates.bare).toFixed(2),
    'pages each': Math.round(median(copied)),
    'share: least': share(Math.min(...copied)),
    median: share(median(copied)),
    most: share(Math.max(...copied)),
    'five pages alone, s': (median(alone) / 1_000).toFixed(2),
    'among the others, s': (median(among) / 1_000).toFixed(2),
    times: (median(among) / median(alone)).toFixed(1),
  };
}

async function pagesOfEach(db: Database): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('runs')
    .innerJoin('lists', 'lists.id', 'runs.list')
    .select(({ fn }) => ['instance_id', fn.sum<number>('pages').as('pages')])
    .groupBy('instance_id')
    .execute();
  return new Map(rows.map(({ instance_id, pages }) => [instance_id, Number(pages)]));
}
