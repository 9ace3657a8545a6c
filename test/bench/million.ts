import { setImmediate as othersTurn } from 'node:timers/promises';
import { searchConsumer } from '../../src/changes/search-consumer.ts';
import { PAGE_LIMIT_MAX } from '../../src/contract/limits.ts';
import { readListPage } from '../../src/service/page.ts';
import { ChangeStore } from '../../src/store/changes.ts';
import type { Database } from '../../src/store/database.ts';
import { PageStore } from '../../src/store/pages.ts';
import { type RunClaim, RunStore } from '../../src/store/runs.ts';
import { openStores } from '../../src/store/stores.ts';
import { markDeletions } from '../../src/sync/deletion-brake.ts';
import type { SliceWork, SyncParts } from '../../src/sync/parts.ts';
import type { Bench } from './run.ts';
import { type BenchApp, openStage, SILENT } from './support/bench-app.ts';
import { askedDatabases, DATABASES, type DatabaseKind, vacuum } from './support/bench-database.ts';
import { addCompanies } from './support/fleet.ts';
import { median } from './support/numbers.ts';
import { table } from './table.ts';

const RECORDS = 1_000_000;
const ROWS_PER_PAGE = 50;
const TIMES = 7;
/** Of the records, one in so many is unseen when the sweep is measured: they lie as far apart as they can. */
const UNSEEN = 10;
const MIB = 1024 ** 2;
const RESOURCE = 'contacts';

const LOOK_EVERY_MS = 2;

/** Sees how long the event loop was held at the most, by the time on a processor: others on the machine do not count. */
class LoopWatch {
  #longest = 0;
  #last = cpuMs();
  readonly #first = this.#last;
  readonly #timer = setInterval(() => this.#look(), LOOK_EVERY_MS);

  end(): { cpu: number; longest: number } {
    clearInterval(this.#timer);
    this.#look();
    return { cpu: this.#last - this.#first, longest: this.#longest };
  }

  #look(): void {
    const now = cpuMs();
    this.#longest = Math.max(this.#longest, now - this.#last);
    this.#last = now;
  }
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

type Row = Record<'what' | 'figure' | 'CPU, ms' | 'loop held, ms' | 'goal', string>;

/** Puts a list of a million into a store, and reads it as the web app does. */
export const million: Bench = async (write, rows) => {
  const records = Number(rows.find((row) => /^\d+$/.test(row)) ?? RECORDS);
  for (const kind of askedDatabases(rows, DATABASES)) write(await measure(kind, records));
};

async function measure(kind: DatabaseKind, records: number): Promise<string> {
  await using stack = new AsyncDisposableStack();
  const { sandbox, bench, databaseUrl } = await openStage(stack, { kind });
  const { db } = bench;
  const [company] = await addCompanies(sandbox, 1, { contacts: records, conversations: 0 });
  if (company === undefined) throw new Error('no company');
  const instanceId = await bench.install(company, await sandbox.authorize(company));
  const token = company.api_tokens[0]?.token ?? '';
  const lines: Row[] = [];
  const add = async (what: string, work: () => Promise<string>, goal = '') => {
    const watch = new LoopWatch();
    const figure = await work();
    const { cpu, longest } = watch.end();
    lines.push({ what, figure, 'CPU, ms': cpu.toFixed(0), 'loop held, ms': longest.toFixed(0), goal });
  };

  const first = await begin(db, instanceId);
  await add('put into the store', () =>
    fill(db, first, `${sandbox.up.apiUrl}/contacts?limit=${PAGE_LIMIT_MAX}`, token),
  );
  await vacuum(databaseUrl);
  await add('end of a run, nothing unseen', () => sweep(db, instanceId, first));
  await new RunStore(db).finish(first, 0, Date.now());
  await add('index of the search', () => buildIndex(db, instanceId));
  await vacuum(databaseUrl);
  await addReads(bench, instanceId, records, add);
  await add('download', () => exportAll(bench, instanceId));
  const next = await begin(db, instanceId);
  await db
    .updateTable('seen')
    .set({ run: next.run })
    .where(({ eb }) => eb(eb('record', '%', UNSEEN), '<>', 0))
    .execute();
  await vacuum(databaseUrl);
  await add(`end of a run, one in ${UNSEEN} unseen`, () => sweep(db, instanceId, next), '6 s for 100,000');
  return `${records.toLocaleString('en')} contacts of one company on ${kind}; reads: the middle one of ${TIMES} times\nCPU and how long the event loop was held at most: of this process, by time on a processor\n\n${table(lines)}\n\n`;
}

async function begin(db: Database, instanceId: string): Promise<RunClaim> {
  const runs = new RunStore(db);
  await runs.start(instanceId, [RESOURCE], Date.now());
  const claimed = await runs.claim({ instanceId, resource: RESOURCE });
  if (claimed === undefined) throw new Error('no run');
  return { run: claimed.id, list: claimed.list, fence: claimed.fence };
}

/** Puts a whole list into the store, page by page, as a run does. */
async function fill(db: Database, claim: RunClaim, url: string, token: string): Promise<string> {
  const store = new PageStore(db);
  const headers = { authorization: `Bearer ${token}` };
  const fetchPage = async (at: string) => Buffer.from(await (await fetch(at, { headers })).arrayBuffer());
  const startedAt = performance.now();
  let records = 0;
  let cursor: string | null = null;
  for (let coming: Promise<Buffer> | undefined = fetchPage(url); coming !== undefined; ) {
    const page = readListPage((await coming).toString());
    coming = page.next === null ? undefined : fetchPage(page.next);
    const fetched = { ...page, requests: 1, refused: 0 };
    if ((await store.commit(claim, cursor, fetched, Date.now())) === undefined)
      throw new Error('not written');
    cursor = page.next;
    records += page.texts.length;
  }
  return perSecond(records, performance.now() - startedAt);
}

async function buildIndex(db: Database, instanceId: string): Promise<string> {
  const changes = new ChangeStore(db);
  const consumer = searchConsumer(db);
  const context = { logger: SILENT, signal: new AbortController().signal };
  const key = { instanceId, resource: RESOURCE, consumer: consumer.name };
  const startedAt = performance.now();
  let records = 0;
  for (let held = await changes.claim(key, consumer); held !== undefined; ) {
    const entries = await changes.read(held.list, held.cursor);
    if (entries.length === 0) return perSecond(records, performance.now() - startedAt);
    held = await changes.deliver(held, entries, await consumer.take(entries, held, context));
    records += entries.length;
    await othersTurn();
  }
  throw new Error('the index is not the bench’s any more');
}

/** What the end of a whole run does, as in the worker. */
async function sweep(db: Database, instanceId: string, claim: RunClaim): Promise<string> {
  const stores = openStores(db);
  const run = await db.selectFrom('runs').selectAll().where('id', '=', claim.run).executeTakeFirstOrThrow();
  const instance = await stores.instances.find(instanceId);
  const work = { instance, resource: { name: RESOURCE }, claim } as SliceWork;
  const context = { logger: SILENT, signal: new AbortController().signal, othersWait: () => false };
  const parts = { ...stores } as unknown as SyncParts;
  const startedAt = performance.now();
  await markDeletions(parts, work, run, () => false, context);
  const ms = performance.now() - startedAt;
  const { deleted } = await db
    .selectFrom('runs')
    .selectAll()
    .where('id', '=', claim.run)
    .executeTakeFirstOrThrow();
  return `${ms.toFixed(0)} ms, ${deleted.toLocaleString('en')} deleted`;
}

async function addReads(
  { app, db }: BenchApp,
  instanceId: string,
  records: number,
  add: (what: string, work: () => Promise<string>, goal?: string) => Promise<void>,
): Promise<void> {
  const store = openStores(db).records;
  const page = (number: number, search?: string) =>
    store.browse(instanceId, RESOURCE, {
      offset: (number - 1) * ROWS_PER_PAGE,
      limit: ROWS_PER_PAGE,
      ...(search === undefined ? {} : { search }),
    });
  const [middle] = (await page(Math.ceil(records / ROWS_PER_PAGE / 2))).records;
  const contact = JSON.parse(middle?.document ?? '{}');
  const rare: string = contact.handles[0].handle;
  const { city, plan } = contact.custom_fields;
  const searches = {
    'a word that one has': [rare, '50 ms'],
    'a word that many have': [city, '500 ms'],
    'a word that a third has': [plan, '500 ms'],
    'the beginning of a word': [rare.slice(0, 3), '500 ms'],
    'two words': [`${city} ${plan}`, '500 ms'],
    'a word that none has': ['zzqxjkv', '50 ms'],
  };
  await add('dashboard', () => often(() => app.control.status(instanceId)), '50 ms');
  for (const number of [1, 500, Math.ceil(records / ROWS_PER_PAGE)])
    await add(
      `browse, page ${number.toLocaleString('en')}`,
      () => often(() => page(number)),
      number > 500 ? '' : '50 ms',
    );
  for (const [what, [word = '', goal = '']] of Object.entries(searches)) {
    const search = async () =>
      `${await often(() => page(1, word))}, ${(await page(1, word)).total.toLocaleString('en')} found`;
    await add(`search, ${what}`, search, goal);
  }
}

/** Reads everything as the download does. */
async function exportAll({ db }: BenchApp, instanceId: string): Promise<string> {
  const before = process.memoryUsage().rss;
  const startedAt = performance.now();
  let rows = 0;
  let most = before;
  for await (const { document } of openStores(db).records.stream(instanceId, RESOURCE)) {
    if (document.length > 0 && ++rows % 20_000 === 0) most = Math.max(most, process.memoryUsage().rss);
  }
  return `${perSecond(rows, performance.now() - startedAt)}, +${((most - before) / MIB).toFixed(0)} MiB`;
}

async function often(work: () => Promise<unknown>): Promise<string> {
  const times: number[] = [];
  for (let time = 0; time < TIMES; time++) {
    const startedAt = performance.now();
    await work();
    times.push(performance.now() - startedAt);
  }
  return `${median(times).toFixed(1)} ms`;
}

function perSecond(records: number, ms: number): string {
  return `${Math.round((records / ms) * 1_000).toLocaleString('en')} records/s (${(ms / 1_000).toFixed(0)} s)`;
}
