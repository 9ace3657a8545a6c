import type { ChildProcess } from 'node:child_process';
import { median, type Row, sum, table } from './report.ts';
import type { Bench } from './run.ts';
import {
  askedDatabases,
  askedNumber,
  awaitRuns,
  bareLists,
  cpuMsOf,
  type DatabaseKind,
  openStage,
  type Stage,
  WITHOUT_SEARCH,
} from './stage.ts';

/** Of each resource. The window of the limit is short, so that no company waits for it. */
const PAGES_EACH = 50;
const WINDOW_MS = 2_000;
const ROUNDS = 3;
/** The bare loop has as many requests under way at the same time as a worker has runs. */
const AT_ONCE = 50;
const GOAL: Record<DatabaseKind, number> = { sqlite: 1.3, postgres: 2 };

/** CPU of a worker for a page of 100 records, and of the bare loop for the same lists on a database of the same kind. */
export const cost: Bench = async (write, rows) => {
  const count = askedNumber(rows, 30);
  for (const kind of askedDatabases(rows)) {
    const ratios: number[] = [];
    const lines: Row[] = [];
    while (lines.length < ROUNDS) {
      await using stage = await openStage({ kind, windowMs: WINDOW_MS });
      const companies = addCompanies(stage, count);
      const lists = bareLists(stage.sandbox.apiUrl, companies);
      const databaseUrl = await stage.createDatabase();
      const bare = await stage.startBareLoop()({ databaseUrl, lists, atOnce: AT_ONCE });
      const instances = await Promise.all(companies.map((company) => stage.install(company)));
      const copied = await copyOnce(stage, await stage.startWorker(WITHOUT_SEARCH), instances);
      const ratio = copied.cpuMs / copied.pages / (bare.cpuMs / bare.pages);
      ratios.push(ratio);
      lines.push({
        pages: copied.pages,
        'worker, ms/page': (copied.cpuMs / copied.pages).toFixed(2),
        'bare loop, ms/page': (bare.cpuMs / bare.pages).toFixed(2),
        ratio: ratio.toFixed(2),
      });
    }
    write(`CPU of a page of 100 records on ${kind}, without the search index; the bare loop before it
${count} companies with ${PAGES_EACH} pages of contacts and of conversations, no latency, no company at the limit.

${table(lines)}

Median: ${median(ratios).toFixed(2)} times the CPU of the bare loop (goal: ${GOAL[kind]}).

`);
  }
};

/** Copies companies twice. Nothing changes in between, so the second run writes no record. */
export const secondRun: Bench = async (write, rows) => {
  const count = askedNumber(rows, 10);
  for (const kind of askedDatabases(rows)) {
    await using stage = await openStage({ kind, windowMs: WINDOW_MS });
    const instances = await Promise.all(addCompanies(stage, count).map((company) => stage.install(company)));
    const worker = await stage.startWorker(WITHOUT_SEARCH);
    const lines: Row[] = [];
    for (const run of ['first', 'second']) {
      const { pages, written, cpuMs } = await copyOnce(stage, worker, instances);
      lines.push({ run, pages, 'records written': written, 'CPU, ms/page': (cpuMs / pages).toFixed(2) });
    }
    write(`${count} companies with ${PAGES_EACH} pages of contacts and of conversations on ${kind}, copied twice
Nothing changes in between.

${table(lines)}

`);
  }
};

function addCompanies(stage: Stage, count: number) {
  const records = PAGES_EACH * 100;
  const size = { contacts: records, conversations: records };
  return Array.from({ length: count }, () => stage.addCompany(size));
}

/** Syncs the instances once. @returns the CPU time of the worker, and how many records it wrote */
async function copyOnce({ app, db }: Stage, worker: ChildProcess, instances: readonly string[]) {
  const newest = db.selectFrom('lists').select(({ fn }) => fn.max('change_seq').as('seq'));
  const { seq } = await newest.executeTakeFirstOrThrow();
  const cpuBefore = cpuMsOf(worker);
  await Promise.all(instances.map((id) => app.control.syncNow(id)));
  await awaitRuns(db);
  const cpuMs = cpuMsOf(worker) - cpuBefore;
  const { written } = await db
    .selectFrom('records')
    .select(({ fn }) => fn.countAll().as('written'))
    .where('change_seq', '>', seq ?? 0)
    .executeTakeFirstOrThrow();
  const statuses = await Promise.all(instances.map((id) => app.control.status(id)));
  const pages = sum(statuses.flatMap((one) => Object.values(one?.resources ?? {}).map((list) => list.pages)));
  return { pages, written: Number(written), cpuMs };
}
