import { setImmediate as othersTurn } from 'node:timers/promises';
import { ConsumerError } from '../../src/changes/delivery.ts';
import { searchConsumer } from '../../src/changes/search-consumer.ts';
import { PAGE_LIMIT_MAX } from '../../src/contract/limits.ts';
import { readListPage } from '../../src/service/page.ts';
import { ChangeStore } from '../../src/store/changes.ts';
import type { Database } from '../../src/store/database.ts';
import { DeletionStore } from '../../src/store/deletions.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { PageStore } from '../../src/store/pages.ts';
import { type RunClaim, RunStore } from '../../src/store/runs.ts';
import { installInstance } from '../support/install-instance.ts';
import { type BareStore, openBareStore } from './bare-store.ts';
import { benchDir, SILENT } from './support/bench-app.ts';
import { BenchDatabases, type DatabaseKind, vacuum } from './support/bench-database.ts';
import { BenchSandbox } from './support/bench-sandbox.ts';
import { addCompanies, bareCompanies } from './support/fleet.ts';
import { table } from './table.ts';

const PAGES = 1_000;
const WARM_UP_PAGES = 100;
/** What the prototype took, in milliseconds. */
const PROTOTYPE: Record<DatabaseKind, readonly (number | undefined)[]> = {
  sqlite: [undefined, undefined, 1.4, 0.7, 1.05, 0.2, 2.2, 40],
  postgres: [undefined, undefined, 2.1, 1.5, 2.2, undefined, undefined, undefined],
};

/** Adds up what parts of the work take of this process: CPU, all threads together, and time, in milliseconds. */
class Meter {
  cpuMs = 0;
  wallMs = 0;

  async measure<T>(work: () => Promise<T>): Promise<T> {
    const [before, startedAt] = [process.cpuUsage(), performance.now()];
    const result = await work();
    const { user, system } = process.cpuUsage(before);
    this.cpuMs += (user + system) / 1_000;
    this.wallMs += performance.now() - startedAt;
    return result;
  }
}

/** What one page of 100 records costs the store, in this process and without a network. */
export async function storeCost(kind: DatabaseKind, pages = PAGES): Promise<string> {
  await using stack = new AsyncDisposableStack();
  const dir = benchDir();
  stack.defer(() => dir.remove());
  const databases = stack.use(await BenchDatabases.start(kind));
  const url = await databases.create(dir.path);
  const db = await openDatabase(url);
  stack.defer(() => db.destroy());
  const bodies = await readPages(pages);
  const bare = await openBareStore(await databases.create(dir.path));
  stack.defer(() => bare.close());
  const plain = new Meter();
  await storePlainly(bare, 'warm-up', bodies.slice(0, WARM_UP_PAGES), new Meter());
  await storePlainly(bare, 'measured', bodies, plain);
  await measureList(db, url, 'warm-up', bodies.slice(0, WARM_UP_PAGES));
  const meters = { 'a plain loop: parse, store': plain, ...(await measureList(db, url, 'measured', bodies)) };
  const rows = Object.entries(meters).map(([what, { cpuMs, wallMs }], at) => {
    const count = at === 7 ? 1 : pages;
    return {
      what,
      'CPU, ms': (cpuMs / count).toFixed(2),
      'time, ms': (wallMs / count).toFixed(2),
      'prototype, ms': PROTOTYPE[kind][at]?.toString() ?? '',
    };
  });
  return `The store alone on ${kind}: ${pages.toLocaleString('en')} pages of ${PAGE_LIMIT_MAX} contacts, CPU of the process\n\n${table(rows)}\n\n`;
}

/** Pages of a list of the sandbox, as they come. */
export async function readPages(count: number): Promise<Buffer[]> {
  const sandbox = await BenchSandbox.start();
  try {
    const added = await addCompanies(sandbox, 1, { contacts: count * PAGE_LIMIT_MAX, conversations: 0 });
    const headers = { authorization: `Bearer ${bareCompanies(added)[0]?.token}` };
    const bodies: Buffer[] = [];
    let next: string | null = `${sandbox.up.apiUrl}/contacts?limit=${PAGE_LIMIT_MAX}`;
    while (next !== null) {
      const body: Buffer = Buffer.from(await (await fetch(next, { headers })).arrayBuffer());
      bodies.push(body);
      next = readListPage(body.toString()).next;
    }
    return bodies;
  } finally {
    await sandbox.end();
  }
}

async function storePlainly(
  store: BareStore,
  list: string,
  bodies: readonly Buffer[],
  meter: Meter,
): Promise<void> {
  for (const body of bodies) {
    await meter.measure(() => store.write(list, JSON.parse(body.toString())));
    await othersTurn();
  }
}

async function measureList(db: Database, url: string, id: string, bodies: readonly Buffer[]) {
  await installInstance(db, { id: `ins_${id}` }, Date.now());
  const key = { instanceId: `ins_${id}`, resource: 'contacts' };
  const meters = {
    'parse a page': new Meter(),
    'commit, first copy': new Meter(),
    'commit, nothing changed': new Meter(),
    'commit, all changed': new Meter(),
    'read 100 of the feed': new Meter(),
    'index 100 for the search': new Meter(),
    'count all unseen': new Meter(),
  };
  const parsing = meters['parse a page'];
  await copy(db, key, bodies, parsing, meters['commit, first copy']);
  await vacuum(url);
  await copy(db, key, bodies, new Meter(), meters['commit, nothing changed']);
  const changed = bodies.map((body) =>
    Buffer.from(body.toString().replaceAll('{"_links":{"self"', '{"x":1,"_links":{"self"')),
  );
  const { list } = await copy(db, key, changed, new Meter(), meters['commit, all changed']);
  await vacuum(url);
  await readFeed(db, key, meters['read 100 of the feed'], meters['index 100 for the search']);
  const claim = await begin(db, key);
  const count = () => new DeletionStore(db).countUnseen(list, claim.run);
  const unseen = await meters['count all unseen'].measure(count);
  // Not every page is full.
  if (unseen < bodies.length * PAGE_LIMIT_MAX * 0.9) throw new Error(`${unseen} unseen`);
  return meters;
}

export async function begin(db: Database, key: { instanceId: string; resource: string }): Promise<RunClaim> {
  const runs = new RunStore(db);
  await runs.start(key.instanceId, [key.resource], Date.now());
  const claimed = await runs.claim(key);
  if (claimed === undefined) throw new Error('no run');
  return { run: claimed.id, list: claimed.list, fence: claimed.fence };
}

/** A whole run, page by page. */
export async function copy(
  db: Database,
  key: { instanceId: string; resource: string },
  bodies: readonly Buffer[],
  parsing: Meter,
  writing: Meter,
): Promise<RunClaim> {
  const claim = await begin(db, key);
  const store = new PageStore(db);
  let cursor: string | null = null;
  for (const body of bodies) {
    const page = await parsing.measure(async () => {
      return { ...readListPage(body.toString()), requests: 1, refused: 0 };
    });
    const startedFrom = cursor;
    const done = await writing.measure(() => store.commit(claim, startedFrom, page, Date.now()));
    if (done === undefined) throw new Error('not written');
    cursor = page.next;
    await othersTurn();
  }
  await new RunStore(db).finish(claim, 0, Date.now());
  return claim;
}

async function readFeed(
  db: Database,
  key: { instanceId: string; resource: string },
  reading: Meter,
  indexing: Meter,
): Promise<void> {
  const changes = new ChangeStore(db);
  const consumer = searchConsumer(db);
  const context = { logger: SILENT, signal: new AbortController().signal };
  let held = await changes.claim({ ...key, consumer: consumer.name }, consumer);
  while (held !== undefined) {
    const current: typeof held = held;
    const entries = await reading.measure(() => changes.read(current.list, current.cursor));
    if (entries.length === 0) return;
    held = await indexing.measure(async () =>
      changes.deliver(current, entries, await consumer.take(entries, current, context)),
    );
    await othersTurn();
  }
  throw new ConsumerError('the index is not the bench’s any more');
}
