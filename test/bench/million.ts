import { statSync } from 'node:fs';
import { PAGE_LIMIT_MAX } from '../../src/contract/limits.ts';
import type { Database } from '../../src/store/database.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { RecordStore } from '../../src/store/records.ts';
import { RunStore } from '../../src/store/runs.ts';
import { SearchIndex } from '../../src/store/search-index.ts';
import { fillStore } from './million/fill.ts';
import { seeAllBut, sweep } from './million/sweep.ts';
import type { Bench } from './run.ts';
import { BenchApp, benchDir, startBenchRedis } from './support/bench-app.ts';
import { BenchSandbox } from './support/bench-sandbox.ts';
import { addCompanies } from './support/fleet.ts';
import { median } from './support/numbers.ts';
import { table } from './table.ts';

const RECORDS = 1_000_000;
const ROWS_PER_PAGE = 50;
const TIMES = 7;
const MIB = 1024 ** 2;
/** Records that the index takes up at a time, as in the app. */
const PORTION = 50;
/** Rows between two looks at the memory. */
const LOOK_EVERY = 20_000;
/** Rows after which memory is to grow no further. */
const WARM_ROWS = 100_000;

type Row = { what: string; figure: string };

/** Puts a list of a million into a store, and reads it as the web app does. */
export const million: Bench = async (write, rows) => {
  const records = Number(rows[0] ?? RECORDS);
  const dir = benchDir();
  const sandbox = await BenchSandbox.start();
  const redis = await startBenchRedis(dir.path);
  const bench = await BenchApp.open(sandbox, redis.url, dir.path);
  const db = await openDatabase(`file:${bench.databasePath}`);
  try {
    const [company] = await addCompanies(sandbox, 1, { contacts: records, conversations: 0 });
    if (company === undefined) throw new Error('no company');
    const instanceId = await bench.install(company, await sandbox.authorize(company));
    const key = { instanceId, resource: 'contacts' };
    const runs = new RunStore(db);
    await runs.start(key, Date.now());
    const run = await runs.claim(key);
    const claim = { ...key, fence: run?.fence ?? 0 };
    const url = `${sandbox.up.apiUrl}/contacts?limit=${PAGE_LIMIT_MAX}`;
    const filled = await timed(() =>
      fillStore(db, claim, { url, token: company.api_tokens[0]?.token ?? '' }),
    );
    const lines: Row[] = [
      { what: 'put into the store', figure: perSecond(filled.result, filled.ms) },
      { what: 'end of a run: nothing unseen', figure: swept(await sweep(db, claim)) },
    ];
    const indexed = await timed(() => buildIndex(db));
    lines.push({ what: 'index of the search, all anew', figure: perSecond(indexed.result, indexed.ms) });
    lines.push({
      what: 'size of the file',
      figure: `${(statSync(bench.databasePath).size / MIB).toFixed(0)} MiB`,
    });
    lines.push(...(await read(bench, db, instanceId, records)));
    lines.push({ what: 'export', figure: await exportAll(db, instanceId) });
    for (const [every, offset] of [
      [1_000, 0],
      [10, 5],
    ] as const) {
      const began = await seeAllBut(db, claim, { every, offset, records });
      lines.push({ what: `end of a run: one in ${every} unseen`, figure: swept(await sweep(db, began)) });
    }
    write(`${records.toLocaleString('en')} contacts of one company in the store
Reading: the middle one of ${TIMES} times. What is unseen at a run's end lies scattered, which is the worst case; each is parsed and marked.

${table(lines)}
`);
  } finally {
    await db.destroy();
    await bench.close();
    await redis.end();
    await sandbox.end();
    dir.remove();
  }
};

async function timed<T>(work: () => Promise<T>): Promise<{ result: T; ms: number }> {
  const startedAt = performance.now();
  const result = await work();
  return { result, ms: performance.now() - startedAt };
}

function perSecond(records: number, ms: number): string {
  const rate = Math.round((records / ms) * 1_000).toLocaleString('en');
  return `${rate} records/s (${(ms / 1_000).toFixed(1)} s)`;
}

function swept({ deleted, ms }: { deleted: number; ms: number }): string {
  return `${ms.toFixed(ms < 100 ? 1 : 0)} ms, ${deleted.toLocaleString('en')} marked`;
}

async function buildIndex(db: Database): Promise<number> {
  const index = new SearchIndex(db);
  let records = 0;
  for (;;) {
    const portion = await index.indexPortion(PORTION);
    if (portion === undefined) return records;
    records += portion.records;
  }
}

async function read(bench: BenchApp, db: Database, instanceId: string, records: number): Promise<Row[]> {
  const store = new RecordStore(db);
  const page = (number: number, search?: string) =>
    store.browse(instanceId, 'contacts', {
      offset: (number - 1) * ROWS_PER_PAGE,
      limit: ROWS_PER_PAGE,
      ...(search === undefined ? {} : { search }),
    });
  const [middle] = (await page(Math.ceil(records / ROWS_PER_PAGE / 2))).records;
  const contact = JSON.parse(middle?.document ?? '{}');
  const rare: string = contact.handles[0].handle;
  const words = {
    'a word that one has': rare,
    'a word that many have': contact.custom_fields.city,
    'a word that a third has': contact.custom_fields.plan,
    'the beginning of a word': rare.slice(0, 3),
    'two words': `${contact.custom_fields.city} ${contact.custom_fields.plan}`,
    'a word that none has': 'zzqxjkv',
  };
  const lines: Row[] = [
    { what: 'status of the dashboard', figure: await often(() => bench.app.control.status(instanceId)) },
  ];
  for (const number of [1, 500, Math.ceil(records / ROWS_PER_PAGE)])
    lines.push({
      what: `browse, page ${number.toLocaleString('en')}`,
      figure: await often(() => page(number)),
    });
  for (const [what, word] of Object.entries(words)) {
    const { total } = await page(1, word);
    lines.push({
      what: `search, ${what}`,
      figure: `${await often(() => page(1, word))}, ${total.toLocaleString('en')} found`,
    });
  }
  return lines;
}

async function often(work: () => Promise<unknown>): Promise<string> {
  const times: number[] = [];
  for (let time = 0; time < TIMES; time++) times.push((await timed(work)).ms);
  return `${median(times).toFixed(1)} ms`;
}

/** Reads everything as the download does. */
async function exportAll(db: Database, instanceId: string): Promise<string> {
  const startedAt = performance.now();
  let rows = 0;
  let warm = 0;
  let most = 0;
  for await (const document of new RecordStore(db).stream(instanceId, 'contacts')) {
    rows += document.length > 0 ? 1 : 0;
    if (rows % LOOK_EVERY !== 0) continue;
    const { rss } = process.memoryUsage();
    if (rows <= WARM_ROWS) warm = Math.max(warm, rss);
    most = Math.max(most, rss);
  }
  const rate = perSecond(rows, performance.now() - startedAt);
  return `${rate}, memory grows by ${((most - warm) / MIB).toFixed(0)} MiB after the first ${WARM_ROWS.toLocaleString('en')}`;
}
