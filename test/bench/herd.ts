import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { HANDLER_CONSUMER, SEARCH_CONSUMER } from '../../src/store/changes.ts';
import { findFreePort } from '../support/free-port.ts';
import { installMany } from '../support/install-many.ts';
import type { AskOrder, AskTimes } from './ask-often.ts';
import { percentile, type Row, table } from './report.ts';
import type { Bench } from './run.ts';
import {
  askedDatabases,
  askedNumber,
  awaitConsumers,
  childrenOf,
  cpuMsOf,
  type DatabaseKind,
  nextMessage,
  openStage,
  type Stage,
  stop,
} from './stage.ts';

const SIZES = [1_000, 10_000];
/** Records of a list: a long tail. Of a thousand companies one has a thousand pages, and ten have a hundred. */
const TAIL = [
  { every: 1_000, records: 100_000 },
  { every: 100, records: 10_000 },
  { every: 1, records: 250 },
];
/** In the steady state each list is a page. */
const SHORT = [{ every: 1, records: 20 }];
const DUE_MS = 120_000;
const NEWCOMER_AT_MS = 10_000;
const STEADY_MS = 120_000;
const OLDEST_MS = 2_000;
const IDLE_MS = 60_000;
const RECOVERY_MS = 120_000;
const LOOK_MS = 250;
const ASK_MS = 3_000;
const LOST = 'refreshed tokens could not be stored';
const PASSWORD = 'bench-of-the-herd';

/**
 * All companies fall due at once, with two workers; then trouble; then all are read, without and with checks.
 * `herd:2000,postgres` asks for a size and a database, and `herd:due` or `herd:steady` for a part.
 */
export const herd: Bench = async (write, rows) => {
  const sizes = rows.some((row) => /^\d+$/.test(row)) ? [askedNumber(rows, 0)] : SIZES;
  const workers = rows.includes('three') ? 3 : 2;
  for (const kind of askedDatabases(rows, ['postgres'])) {
    for (const [part, title, measure] of [
      ['due', 'all companies due at once', due],
      ['steady', 'all lists read, one page each', steady],
    ] as const) {
      if (!rows.includes(part) && (rows.includes('due') || rows.includes('steady'))) continue;
      const columns: Record<string, string>[] = [];
      for (const size of sizes) columns.push(await measure(kind, size, workers));
      const lines = Object.keys(columns[0] ?? {}).map((name): Row => {
        const cells = columns.map((column, at) => [`${sizes[at]} companies`, column[name] ?? ''] as const);
        return { [`${title}, ${kind}, ${workers} workers`]: name, ...Object.fromEntries(cells) };
      });
      write(`${table(lines)}\n\n`);
    }
  }
};

async function due(kind: DatabaseKind, size: number, count: number): Promise<Record<string, string>> {
  await using stage = await openStage({ kind });
  const { sandbox, db } = stage;
  await install(stage, size, TAIL);
  const web = await startWeb(stage);
  const mark = sandbox.requests().at(-1)?.n ?? 0;
  const startedAt = Date.now();
  const since = () => Date.now() - startedAt;
  const lost: string[] = [];
  const workers = await startWorkers(stage, count, (line) => line.includes(LOST) && lost.push(line));
  const readyMs = since();
  const asking = askOften(stage, workers, `${web}/ops`);
  let startedMs: number | undefined;
  let newcomer: Promise<number> | undefined;
  for (let runs = await countRuns(stage); since() < DUE_MS && runs.finished < 2 * size; ) {
    runs = await countRuns(stage);
    if (runs.started >= 2 * size) startedMs ??= since();
    if (since() > NEWCOMER_AT_MS) newcomer ??= firstPageOf(stage);
    await sleep(LOOK_MS);
  }
  const [ms, { pages }] = [since(), await countRuns(stage)];
  const times = await asking();
  const requests = sandbox.requests(mark);
  const result = {
    'workers ready after': seconds(readyMs),
    'first request after': seconds((requests[0]?.at ?? Number.NaN) - startedAt),
    'every run started after': seconds(startedMs),
    'starts a second': ((2 * size) / ((startedMs ?? Number.NaN) / 1_000)).toFixed(0),
    'pages a second': (pages / (ms / 1_000)).toFixed(0),
    'CPU of each worker': cpuOf(workers, ms),
    'first page of a newcomer after': seconds(await newcomer),
    'delay of the loops, 99 % and worst': delays(times),
    '/metrics, 95 % and worst': percentiles(times['/metrics']),
    '/ops, 95 % and worst': percentiles(times['/ops']),
    ...(await memoryOf(stage, workers)),
    'pages after kill -9 of a worker': await recovery(stage, async () => {
      if (workers[0] !== undefined) await stop(workers[0].process, 'SIGKILL');
    }),
    'pages after FLUSHALL': await recovery(stage, () => stage.redis.flushall()),
    ...(kind === 'postgres' && {
      'pages after a crash of PostgreSQL': await recovery(stage, () => crash(stage)),
    }),
  };
  const open = db.selectFrom('runs').select('list').where('finished_at', 'is', null).groupBy('list');
  const twice = await open.having(({ fn }) => fn.countAll<number>(), '>', 1).execute();
  const stopped = await db.selectFrom('instances').select('id').where('status', '!=', 'active').execute();
  return {
    ...result,
    'lists with two open runs': String(twice.length),
    '429s': String(sandbox.requests(mark).filter(({ status }) => status === 429).length),
    'tokens lost': String(lost.length + stopped.length),
  };
}

async function steady(kind: DatabaseKind, size: number, count: number): Promise<Record<string, string>> {
  await using stage = await openStage({ kind });
  await install(stage, size, SHORT);
  const without = await startWorkers(stage, count, () => undefined, { CHECK_INTERVAL_SECONDS: '0' });
  while ((await countRuns(stage)).finished < 2 * size) await sleep(LOOK_MS);
  // Indexing and deliveries go on after the last run.
  await awaitConsumers(stage.db, [HANDLER_CONSUMER, SEARCH_CONSUMER]);
  const transactions = async () => {
    const counted = sql<{ count: number }>`select xact_commit + xact_rollback as count from pg_stat_database
      where datname = current_database()`;
    return kind === 'sqlite' ? Number.NaN : ((await counted.execute(stage.db)).rows[0]?.count ?? 0);
  };
  const [idleAt, idleFrom] = [performance.now(), await transactions()];
  const idleCpu = without.map(({ process }) => cpuMsOf(process));
  const askingIdle = askOften(stage, without);
  await sleep(IDLE_MS);
  const idleMs = performance.now() - idleAt;
  const idle = {
    'idle, CPU of a worker a second': without
      .map(
        ({ process }, at) => `${((cpuMsOf(process) - (idleCpu[at] ?? 0)) / (idleMs / 1_000)).toFixed(1)} ms`,
      )
      .join(' · '),
    'idle, transactions a second': (((await transactions()) - idleFrom) / (idleMs / 1_000)).toFixed(1),
    'idle, delay of the loops, 99 % and worst': delays(await askingIdle()),
  };
  await Promise.all(without.map(({ process }) => stop(process)));
  const workers = await startWorkers(stage, count);
  const checksFrom = Date.now();
  const oldestCheck = async () => {
    const oldest = stage.db
      .selectFrom('lists')
      .select(({ fn }) => fn.min<number | null>('checked_at').as('at'));
    return (await oldest.executeTakeFirstOrThrow()).at ?? 0;
  };
  // The first checks of all lists are due at once.
  while ((await oldestCheck()) < checksFrom) await sleep(LOOK_MS);
  const firstMs = Date.now() - checksFrom;
  const asking = askOften(stage, workers);
  const [from, startedAt] = [stage.sandbox.requests().at(-1)?.n ?? 0, performance.now()];
  const cpuFrom = workers.map((worker) => ({ ...worker, cpuMs: cpuMsOf(worker.process) }));
  const oldest: number[] = [];
  while (performance.now() - startedAt < STEADY_MS) {
    oldest.push(Date.now() - (await oldestCheck()));
    await sleep(OLDEST_MS);
  }
  const ms = performance.now() - startedAt;
  const requests = (stage.sandbox.requests().at(-1)?.n ?? 0) - from;
  return {
    ...idle,
    'first checks of all lists took': seconds(firstMs),
    'with checks, requests a second': (requests / (ms / 1_000)).toFixed(0),
    'with checks, the oldest one, median and worst': [0.5, 1]
      .map((share) => seconds(percentile(oldest, share)))
      .join(', '),
    'with checks, CPU of each worker': cpuOf(cpuFrom, ms),
    'with checks, delay of the loops, 99 % and worst': delays(await asking()),
    ...(await memoryOf(stage, workers)),
  };
}

type StartedWorker = { process: ChildProcess; port: number; cpuMs: number };

function install(stage: Stage, size: number, sizes: typeof TAIL) {
  const companies = Array.from({ length: size }, (_, n) => {
    const records = sizes.find(({ every }) => n % every === every - 1)?.records ?? 0;
    return stage.addCompany({ contacts: records, conversations: records });
  });
  return installMany(stage.db, stage.cipher, stage.sandbox, companies);
}

async function startWorkers(
  stage: Stage,
  count: number,
  onLine?: (line: string) => void,
  env: Readonly<Record<string, string>> = {},
): Promise<StartedWorker[]> {
  const starting = Array.from({ length: count }, async () => {
    const port = await findFreePort();
    const process = await stage.startWorker({ ...env, WORKER_PORT: String(port) }, onLine);
    return { process, port, cpuMs: cpuMsOf(process) };
  });
  return Promise.all(starting);
}

/** @returns the address of the web app */
async function startWeb(stage: Stage): Promise<string> {
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  const env = { PORT: String(port), PUBLIC_URL: url, OPERATOR_PASSWORD: PASSWORD };
  await stage.start('src/web.ts', 'the web app listens', env);
  return url;
}

/** Installs a small company as an administrator does. @returns when its first page came, in milliseconds from then */
async function firstPageOf(stage: Stage): Promise<number> {
  const { sandbox, app } = stage;
  const company = stage.addCompany({ contacts: 50, conversations: 50 });
  const mark = sandbox.requests().at(-1)?.n ?? 0;
  const id = await stage.install(company);
  const installedAt = Date.now();
  await app.control.syncNow(id);
  for (;;) {
    const own = sandbox.requests(mark).filter(({ company_id }) => company_id === company.id);
    const first = own.find(({ path }) => path !== '/me');
    if (first !== undefined) return first.at - installedAt;
    await sleep(LOOK_MS);
  }
}

async function countRuns({ db }: Stage) {
  const { started, finished, pages } = await db
    .selectFrom('runs')
    .where('kind', '=', 'full')
    .select(({ fn }) => [fn.countAll<number>().as('started'), fn.count<number>('finished_at').as('finished')])
    .select(({ fn }) => fn.sum<number | null>('pages').as('pages'))
    .executeTakeFirstOrThrow();
  return { started, finished, pages: pages ?? 0 };
}

/** @returns until pages come again, and every list that was read at that moment has its next one */
async function recovery(stage: Stage, trouble: () => Promise<unknown>): Promise<string> {
  const runs = stage.db.selectFrom('runs').where('kind', '=', 'full').where('state', '=', 'running');
  const before = await runs.select(['id', 'pages']).execute();
  const { pages } = await countRuns(stage);
  const begun = performance.now();
  await trouble();
  const since = () => performance.now() - begun;
  let pagesMs: number | undefined;
  for (let left = before; since() < RECOVERY_MS && (left.length > 0 || pagesMs === undefined); ) {
    await sleep(LOOK_MS);
    try {
      if ((await countRuns(stage)).pages > pages) pagesMs ??= since();
      const still = await runs.select(['id', 'pages']).execute();
      left = before.filter(({ id, pages }) => still.some((run) => run.id === id && run.pages === pages));
    } catch {
      // The database is away.
    }
  }
  return `${seconds(pagesMs)}; all of ${before.length} lists after ${seconds(since())}`;
}

/** The server ends all sessions, and recovers, when one of its processes is killed. */
async function crash({ db }: Stage): Promise<void> {
  const { rows } = await sql<{ pid: number }>`select pid from pg_stat_activity
    where application_name = 'partner-app' and pid != pg_backend_pid() limit 1`.execute(db);
  process.kill(rows[0]?.pid ?? Number.NaN, 'SIGKILL');
}

function cpuOf(workers: readonly StartedWorker[], ms: number): string {
  return workers
    .map(({ process, cpuMs }) => `${((100 * (cpuMsOf(process) - cpuMs)) / ms).toFixed(0)} %`)
    .join(' · ');
}

/** Usually, and at worst. */
function delays({ p99 = [], max = [] }: AskTimes): string {
  return [percentile(p99, 0.5), percentile(max, 1)].map(seconds).join(', ');
}

/** Megabytes of the workers with their delivery processes, of Redis and of PostgreSQL. */
async function memoryOf(stage: Stage, workers: readonly StartedWorker[]): Promise<Record<string, string>> {
  const redis = Number(/used_memory:(\d+)/.exec(await stage.redis.info('memory'))?.[1]) / 2 ** 20;
  const ofServer = await sql<{ pid: number }>`select pid from pg_stat_activity`
    .execute(stage.db)
    .then(({ rows }) => rows.map(({ pid }) => pid))
    .catch(() => []);
  const sum = (pids: readonly number[]) => pids.reduce((total, pid) => total + memoryMb(pid), 0);
  const own = workers.map(({ process }) => sum([process, ...childrenOf(process)].map(({ pid = 0 }) => pid)));
  return {
    'memory of each worker, with its delivery process': own.map((mb) => `${mb.toFixed(0)} MB`).join(' · '),
    'memory of Redis': `${redis.toFixed(0)} MB`,
    ...(ofServer.length > 0 && { 'memory of PostgreSQL': `${sum(ofServer).toFixed(0)} MB` }),
  };
}

/** A process's share of the memory that it has. 0 for one that has ended. */
function memoryMb(pid: number): number {
  try {
    return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1_024;
  } catch {
    return 0;
  }
}

/** Asks the app from another process. @returns what ends that, and has the times */
function askOften(stage: Stage, workers: readonly StartedWorker[], ops?: string): () => Promise<AskTimes> {
  const child = fork(join(import.meta.dirname, 'ask-often.ts'));
  stage.stack.defer(() => stop(child));
  const metrics = workers.map(({ port }) => `http://127.0.0.1:${port}/metrics`);
  const urls = { '/metrics': metrics, ...(ops !== undefined && { '/ops': [ops] }) };
  const authorization = `Basic ${btoa(`bench:${PASSWORD}`)}`;
  child.send({ urls, authorization, everyMs: ASK_MS } satisfies AskOrder);
  return () => {
    const times = nextMessage<AskTimes>(child);
    child.send('over');
    return times;
  };
}

function percentiles(values: readonly number[] = []): string {
  return [0.95, 1].map((share) => seconds(percentile(values, share))).join(', ');
}

function seconds(ms: number | undefined): string {
  if (ms === undefined) return 'never';
  return ms < 1_000 ? `${ms.toFixed(0)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
