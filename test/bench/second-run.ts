import type { Bench } from './run.ts';
import { type BenchApp, openStage, WITHOUT_SEARCH } from './support/bench-app.ts';
import { askedDatabases, DATABASES, type DatabaseKind } from './support/bench-database.ts';
import { awaitProgress } from './support/copy-progress.ts';
import { addCompanies, installAll } from './support/fleet.ts';
import type { WorkerProcess } from './support/worker-process.ts';
import { table } from './table.ts';

/** Short, so that the limit holds nobody up. */
const WINDOW_MS = 2_000;
const COMPANIES = 10;
/** Of each resource. */
const PAGES_EACH = 100;
/** Copied first, so that the first run is not the one of code that is just being compiled. */
const WARM_UP = { contacts: 10_000, conversations: 10_000 };
const WARM_UP_COMPANIES = 4;
const LONGEST_MS = 240_000;

/** Copies some companies twice; nothing changes in between. */
export const secondRun: Bench = async (write, rows) => {
  const count = Number(rows.find((row) => /^\d+$/.test(row)) ?? COMPANIES);
  for (const kind of askedDatabases(rows, DATABASES)) write(await measure(kind, count));
};

async function measure(kind: DatabaseKind, count: number): Promise<string> {
  await using stack = new AsyncDisposableStack();
  const { sandbox, bench } = await openStage(stack, { kind, windowMs: WINDOW_MS });
  const warmUp = await installAll(bench, sandbox, await addCompanies(sandbox, WARM_UP_COMPANIES, WARM_UP));
  const worker = await bench.startWorker(WITHOUT_SEARCH);
  await syncOnce(bench, worker, warmUp);
  const records = PAGES_EACH * 100;
  const companies = await addCompanies(sandbox, count, { contacts: records, conversations: records });
  const instances = await installAll(bench, sandbox, companies);
  const lines = [];
  for (const run of ['first', 'second']) lines.push({ run, ...(await syncOnce(bench, worker, instances)) });
  return `${count} companies with ${PAGES_EACH} pages of contacts and of conversations on ${kind}, copied twice
Nothing changed in between: no record is to be written.

${table(lines)}

`;
}

/** Syncs the instances and waits for the end. */
async function syncOnce(bench: BenchApp, worker: WorkerProcess, instances: readonly string[]) {
  const { db } = bench;
  const { newest } = await db
    .selectFrom('runs')
    .select(({ fn }) => fn.max<number | null>('id').as('newest'))
    .executeTakeFirstOrThrow();
  const seqBefore = await newestChange(bench);
  const cpuBefore = worker.usage()?.cpuMs ?? Number.NaN;
  for (const id of instances) await bench.sync(id);
  await awaitProgress(db, ({ lists, finished }) => lists > 0 && finished === lists, LONGEST_MS);
  const cpuMs = (worker.usage()?.cpuMs ?? Number.NaN) - cpuBefore;
  const sums = await db
    .selectFrom('runs')
    .select(({ fn }) => [fn.sum<number>('pages').as('pages'), fn.sum<number>('seen').as('seen')])
    .where('id', '>', newest ?? 0)
    .executeTakeFirstOrThrow();
  const { written } = await db
    .selectFrom('records')
    .select(({ fn }) => fn.countAll<number>().as('written'))
    .where('change_seq', '>', seqBefore)
    .executeTakeFirstOrThrow();
  const pages = Number(sums.pages);
  return {
    pages,
    seen: Number(sums.seen),
    'records written': Number(written),
    'CPU, ms/page': (cpuMs / pages).toFixed(2),
  };
}

async function newestChange({ db }: BenchApp): Promise<number> {
  const { newest } = await db
    .selectFrom('lists')
    .select(({ fn }) => fn.max<number | null>('change_seq').as('newest'))
    .executeTakeFirstOrThrow();
  return newest ?? 0;
}
