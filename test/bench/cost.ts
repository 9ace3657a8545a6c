import type { ChildProcess } from 'node:child_process';
import { HANDLER_CONSUMER, SEARCH_CONSUMER } from '../../src/store/changes.ts';
import { median, type Row, sum, table } from './report.ts';
import type { Bench } from './run.ts';
import {
  askedDatabases,
  askedNumber,
  awaitConsumers,
  awaitRuns,
  bareLists,
  childrenOf,
  cpuMsOf,
  type DatabaseKind,
  openStage,
  type Stage,
} from './stage.ts';

/** Of each resource. The window of the limit is short, so that no company waits for it. */
const PAGES_EACH = 50;
const WINDOW_MS = 2_000;
const ROUNDS = 3;
/** Companies that are copied first. */
const WARM_UP = 5;
/** The bare loop has as many requests under way at the same time as a worker has runs. */
const AT_ONCE = 50;
const GOAL: Record<DatabaseKind, number> = { sqlite: 1.35, postgres: 1.8 };

/** A worker that only copies, and one with the search index and the fork's handler as it comes. */
const WORKERS = [
  { title: 'without search and deliveries', consumers: [] },
  { title: 'with both', consumers: [HANDLER_CONSUMER, SEARCH_CONSUMER] },
] as const;
type WorkerKind = (typeof WORKERS)[number];

/** CPU of a worker for a page of 100 records, and of the bare loop for the same lists on a database of the same kind. */
export const cost: Bench = async (write, rows) => {
  const count = askedNumber(rows, 30);
  for (const kind of askedDatabases(rows)) {
    const lines: Row[] = [];
    const ratios: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      for (const worker of WORKERS) {
        await using stage = await openStage({ kind, windowMs: WINDOW_MS });
        const companies = addCompanies(stage, WARM_UP + count);
        const process = await startWorker(stage, worker);
        const loop = stage.startBareLoop();
        const copyBoth = async (some: typeof companies) => {
          const lists = bareLists(stage.sandbox.apiUrl, some);
          const databaseUrl = await stage.createDatabase();
          const bare = await loop({ databaseUrl, lists, atOnce: AT_ONCE });
          const instances = await Promise.all(some.map((company) => stage.install(company)));
          return { bare, copied: await copyOnce(stage, worker, process, instances) };
        };
        // The code of both is compiled by then.
        await copyBoth(companies.splice(0, WARM_UP));
        const { bare, copied } = await copyBoth(companies);
        if (copied.pages !== bare.pages) throw new Error(`${copied.pages} pages, not ${bare.pages}.`);
        const [worked, looped] = [copied.cpuMs / copied.pages, bare.cpuMs / bare.pages];
        if (worker.consumers.length === 0) ratios.push(worked / looped);
        lines.push({
          worker: worker.title,
          pages: copied.pages,
          'worker, ms/page': worked.toFixed(2),
          'bare loop, ms/page': looped.toFixed(2),
          ratio: (worked / looped).toFixed(2),
          'delivery process, ms/page': (copied.deliveryMs / copied.pages).toFixed(2),
        });
      }
    }
    write(`CPU of a page of 100 records on ${kind}; the bare loop before it
${count} companies with ${PAGES_EACH} pages of contacts and of conversations, no latency, no company at the limit.

${table(lines.toSorted((one, other) => String(other.worker).localeCompare(String(one.worker))))}

Median without search and deliveries: ${median(ratios).toFixed(2)} times the CPU of the bare loop (goal: ${GOAL[kind]}).

`);
  }
};

/** Copies companies twice. Nothing changes in between, so the second run writes no record. */
export const secondRun: Bench = async (write, rows) => {
  const count = askedNumber(rows, 10);
  for (const kind of askedDatabases(rows)) {
    const lines: Row[] = [];
    for (const worker of WORKERS) {
      await using stage = await openStage({ kind, windowMs: WINDOW_MS });
      const instances = await Promise.all(
        addCompanies(stage, count).map((company) => stage.install(company)),
      );
      const process = await startWorker(stage, worker);
      for (const run of ['first', 'second']) {
        const { pages, written, cpuMs, deliveryMs } = await copyOnce(stage, worker, process, instances);
        if (run === 'second' && written > 0) throw new Error(`The second run wrote ${written} records.`);
        lines.push({
          worker: worker.title,
          run,
          pages,
          'records written': written,
          'worker, ms/page': (cpuMs / pages).toFixed(2),
          'delivery process, ms/page': (deliveryMs / pages).toFixed(2),
        });
      }
    }
    write(`CPU of a page of 100 records on ${kind}
${count} companies with ${PAGES_EACH} pages of contacts and of conversations, copied twice. Nothing changes in between.

${table(lines)}

`);
  }
};

function startWorker(stage: Stage, { consumers }: WorkerKind): Promise<ChildProcess> {
  return consumers.length === 0 ? stage.startPlainWorker() : stage.startWorker();
}

function addCompanies(stage: Stage, count: number) {
  const records = PAGES_EACH * 100;
  const size = { contacts: records, conversations: records };
  return Array.from({ length: count }, () => stage.addCompany(size));
}

/** Syncs the instances once. @returns CPU time of the worker and its delivery process, and how many records it wrote */
async function copyOnce(
  { app, db, checkConsumers }: Stage,
  { consumers }: WorkerKind,
  worker: ChildProcess,
  instances: readonly string[],
) {
  const newest = db.selectFrom('lists').select(({ fn }) => fn.max('change_seq').as('seq'));
  const { seq } = await newest.executeTakeFirstOrThrow();
  // The process that looked for a handler may be among them, and ends.
  const cpuOf = () =>
    [cpuMsOf(worker), sum(childrenOf(worker).map(cpuMsOf).filter(Number.isFinite))] as const;
  const [cpuBefore, deliveryBefore] = cpuOf();
  await Promise.all(instances.map((id) => app.control.syncNow(id)));
  await awaitRuns(db);
  if (consumers.length > 0) await awaitConsumers(db, consumers);
  await checkConsumers(consumers);
  const [cpuAfter, deliveryAfter] = cpuOf();
  const { written } = await db
    .selectFrom('records')
    .select(({ fn }) => fn.countAll().as('written'))
    .where('change_seq', '>', seq ?? 0)
    .executeTakeFirstOrThrow();
  const statuses = await Promise.all(instances.map((id) => app.status.read(id)));
  const pages = sum(statuses.flatMap((one) => Object.values(one?.resources ?? {}).map((list) => list.pages)));
  const times = { cpuMs: cpuAfter - cpuBefore, deliveryMs: deliveryAfter - deliveryBefore };
  return { pages, written: Number(written), ...times };
}
