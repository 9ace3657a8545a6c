import { readFileSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import type { Bench } from './run.ts';
import { BenchApp, benchDir, startBenchRedis } from './support/bench-app.ts';
import { BenchSandbox } from './support/bench-sandbox.ts';
import { CopyWatch } from './support/copy-watch.ts';
import { addCompanies, installAll } from './support/fleet.ts';
import { WriteWitness, type WrittenPages } from './support/log-frames.ts';
import type { WorkerProcess } from './support/worker-process.ts';
import { table } from './table.ts';

/** Short, so that the limit holds nobody up. */
const WINDOW_MS = 2_000;
const COMPANIES = 10;
/** Of each resource. */
const PAGES_EACH = 100;
/** Copied first, so that the first run is not the one of code that is just being compiled. */
const WARM_UP = { contacts: 30_000, conversations: 30_000 };
const WARM_UP_COMPANIES = 4;
const LONGEST_MS = 120_000;

interface RunCost {
  pages: number;
  cpuMs: number;
  /** What the worker gave to the disk: the log, and what goes from there into the file. */
  diskBytes: number;
}

/** Syncs the instances and waits for the end. */
async function syncOnce(
  bench: BenchApp,
  worker: WorkerProcess,
  watch: CopyWatch,
  instances: readonly string[],
): Promise<RunCost> {
  const pagesOf = () => {
    const pages = watch.pagesOfEach();
    return instances.reduce((sum, id) => sum + (pages.get(id) ?? 0), 0);
  };
  const cpuBefore = worker.usage()?.cpuMs ?? Number.NaN;
  const bytesBefore = bytesWritten(worker.pid);
  for (const id of instances) await bench.sync(id);
  await watch.until(({ runs, finished }) => runs > 0 && finished === runs, LONGEST_MS);
  const cpuMs = (worker.usage()?.cpuMs ?? Number.NaN) - cpuBefore;
  return { pages: pagesOf(), cpuMs, diskBytes: bytesWritten(worker.pid) - bytesBefore };
}

function bytesWritten(pid: number): number {
  return Number(/^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]);
}

/** Pages of the database that belong to the records, their indexes, and the index of the search. */
function recordPages({ byName }: WrittenPages): number {
  return [...byName]
    .filter(([name]) => /record|search/.test(name))
    .reduce((sum, [, pages]) => sum + pages, 0);
}

/** How many rows of the copy were written at or after a moment, by their own column. */
function changedSince(path: string, moment: number): number {
  const sqlite = new Sqlite(path, { readonly: true });
  const row = sqlite
    .prepare<[number, number], { count: number }>(
      'select count(*) as count from records where updated_at >= ? or deleted_at >= ?',
    )
    .get(moment, moment);
  sqlite.close();
  return row?.count ?? Number.NaN;
}

/** Copies some companies twice; nothing changes in between. */
export const secondRun: Bench = async (write, rows) => {
  const count = Number(rows[0] ?? COMPANIES);
  const dir = benchDir();
  const sandbox = await BenchSandbox.start({ windowMs: WINDOW_MS });
  const redis = await startBenchRedis(dir.path);
  const bench = await BenchApp.open(sandbox, redis.url, dir.path);
  const watch = new CopyWatch(bench.databasePath);
  try {
    const warmUp = await installAll(bench, sandbox, await addCompanies(sandbox, WARM_UP_COMPANIES, WARM_UP));
    const worker = await bench.startWorker();
    await syncOnce(bench, worker, watch, warmUp);

    const records = PAGES_EACH * 100;
    const companies = await addCompanies(sandbox, count, { contacts: records, conversations: records });
    const instances = await installAll(bench, sandbox, companies);
    const lines = [];
    let written: WrittenPages | undefined;
    for (const run of ['first', 'second']) {
      const startedAt = Date.now();
      // A first run's log would grow beyond all measure under its eyes.
      const witness = run === 'second' ? new WriteWitness(bench.databasePath) : undefined;
      const { pages, cpuMs, diskBytes } = await syncOnce(bench, worker, watch, instances);
      written = witness?.written();
      lines.push({
        run,
        pages,
        'rows of records written': changedSince(bench.databasePath, startedAt),
        'pages of their table and indexes in the log':
          written === undefined ? '' : recordPages(written).toString(),
        'written, KB/page': diskBytes / pages / 1_000,
        'CPU, ms/page': (cpuMs / pages).toFixed(2),
      });
    }
    write(`${count} companies with ${PAGES_EACH} pages of contacts and of conversations, copied twice
Nothing changed in between. In the second run the bench looked on how the write-ahead log grew: every 4 KB page of the database that was written is in it.

${table(lines)}

In the log of the second run: ${[...(written?.byName ?? [])].map(([name, pages]) => `${name} ${pages}`).join(', ')}.
`);
  } finally {
    watch.close();
    await bench.close();
    await redis.end();
    await sandbox.end();
    dir.remove();
  }
};
