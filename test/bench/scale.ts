import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { PARTNER_LIMIT, WINDOW_MS } from '../../src/contract/limits.ts';
import { findFreePort } from '../support/free-port.ts';
import type { BareDone } from './bare-loop.ts';
import { type Counted, windowsOf } from './limit/journal-counts.ts';
import type { Bench } from './run.ts';
import { listsOf, runBareLoop } from './support/bare-run.ts';
import { benchDir, openStage, WITHOUT_SEARCH } from './support/bench-app.ts';
import { askedDatabases, BenchDatabases, type DatabaseKind } from './support/bench-database.ts';
import { BenchSandbox } from './support/bench-sandbox.ts';
import { awaitComplete, awaitProgress, pagesOfEach } from './support/copy-progress.ts';
import { addCompanies, bareCompanies, installAll } from './support/fleet.ts';
import { median } from './support/numbers.ts';
import { table } from './table.ts';

const SIZES = [100, 500, 2_000];
/** More than anyone comes to: a list's length costs nothing until it is read. */
const LISTS = { contacts: 1_000_000, conversations: 1_000_000 };
/** Five pages. */
const SMALL = { contacts: 450, conversations: 0 };
const ARRIVALS = 7;
const AT_ONCE = 50;
const BARE_MS = 30_000;
/** The smallest size leaves the core idle for this share of the time, as far as the bare loop would. */
const LOAD = 0.6;
/** Not counted: the start of everything. */
const RAMP_MS = 10_000;
const MEASURED_MS = 50_000;
/** Begun windows to look at when the core is not full: the last one's begin ends the look. */
const ROOMY_WINDOWS = 2.3;
const START_LIMIT_MS = 120_000;
const MIB = 1024 ** 2;

interface Order {
  kind: DatabaseKind;
  size: number;
  latencyMs: number;
}

/**
 * Many companies at once in one worker process, after the bare loop over as many companies. The window is a minute, but
 * for the smallest size: there it is as long as leaves the core something to spare. `scale:500,latency40,postgres` asks
 * for one size, a service that takes its time, and a database.
 */
export const scale: Bench = async (write, rows) => {
  const asked = rows.filter((row) => /^\d+$/.test(row)).map(Number);
  const latencyMs = Number(rows.find((row) => /^latency\d+$/.test(row))?.slice('latency'.length) ?? 0);
  for (const kind of askedDatabases(rows, ['sqlite'])) {
    const lines: Record<string, string | number>[] = [];
    for (const size of asked.length === 0 ? SIZES : asked)
      lines.push(await measureSize({ kind, size, latencyMs }));
    write(`companies at once in one worker process on ${kind}, ${latencyMs} ms of latency, without the search index
Ratio: pages of the bare loop's; the limit of the smallest size is ${LOAD} of what the loop does (goals: 0.6, 0.7, 0.7).
Shares: of the limit for the smallest size, from the service's journal; else of an even part of all pages by the end (goal: 98 to 102 %).
A small company: from its install to the end of its first sync, of five pages; the middle one of ${ARRIVALS} (goal: 3 times).

${table(lines)}

`);
  }
};

async function measureSize(order: Order): Promise<Record<string, string | number>> {
  const bare = await measureBare(order);
  const bareRate = (bare.pages / bare.wallMs) * 1_000;
  const isFull = order.size > (SIZES[0] ?? 0);
  // Rounded up to whole seconds.
  const roomyMs = Math.ceil((order.size * PARTNER_LIMIT) / (LOAD * bareRate)) * 1_000;
  const windowMs = isFull ? WINDOW_MS : roomyMs;
  const fleet = await measureFleet(order, windowMs, isFull);
  const percent = (share: number) => `${(share * 100).toFixed(1)}%`;
  return {
    companies: order.size,
    'window, s': windowMs / 1_000,
    'pages/s': fleet.pagesPerS,
    'bare loop, pages/s': bareRate,
    ratio: (fleet.pagesPerS / bareRate).toFixed(2),
    'CPU, ms/page': fleet.cpuMsPerPage.toFixed(2),
    'bare, ms/page': (bare.cpuMs / bare.pages).toFixed(2),
    'CPU of the worker': `${(fleet.cpuShare * 100).toFixed(0)}%`,
    'share: least': percent(Math.min(...fleet.shares)),
    median: percent(median(fleet.shares)),
    most: percent(Math.max(...fleet.shares)),
    '429s': fleet.refusals,
    'loop lag p99, ms': fleet.lagMs,
    'RSS, MiB': fleet.rssMib,
    'small one alone, s': (fleet.aloneMs / 1_000).toFixed(2),
    'in the middle, s': (fleet.amongMs / 1_000).toFixed(2),
    times: (fleet.amongMs / fleet.aloneMs).toFixed(1),
  };
}

async function measureBare({ kind, size, latencyMs }: Order): Promise<BareDone> {
  await using stack = new AsyncDisposableStack();
  const dir = benchDir();
  stack.defer(() => dir.remove());
  const databases = stack.use(await BenchDatabases.start(kind));
  const sandbox = await BenchSandbox.start({ latencyMs });
  stack.defer(() => sandbox.end());
  const companies = bareCompanies(await addCompanies(sandbox, size, LISTS));
  const lists = listsOf(sandbox.up.apiUrl, companies);
  const databaseUrl = await databases.create(dir.path);
  return await runBareLoop({ databaseUrl, lists, atOnce: AT_ONCE, forMs: BARE_MS });
}

async function measureFleet({ kind, size, latencyMs }: Order, windowMs: number, isFull: boolean) {
  await using stack = new AsyncDisposableStack();
  const { sandbox, bench } = await openStage(stack, { kind, latencyMs, windowMs });
  const small = await addCompanies(sandbox, 2 * ARRIVALS + 1, SMALL);
  /** @returns how long a small company takes, in milliseconds */
  const arrive = async (): Promise<number> => {
    const company = small.pop();
    if (company === undefined) throw new RangeError('no more small companies');
    const grant = await sandbox.authorize(company);
    const startedAt = performance.now();
    const id = await bench.install(company, grant);
    await bench.sync(id);
    await awaitComplete(bench.db, id);
    return performance.now() - startedAt;
  };
  // A worker that has nothing else to do, but has done it once before.
  const idle = await bench.startWorker(WITHOUT_SEARCH);
  await arrive();
  const alone: number[] = [];
  for (let arrival = 0; arrival < ARRIVALS; arrival++) alone.push(await arrive());
  await idle.stop();

  const companies = await addCompanies(sandbox, size, LISTS);
  const instances = await installAll(bench, sandbox, companies);
  const port = await findFreePort();
  const profile = process.env.BENCH_PROFILE === undefined ? '' : ' --cpu-prof --cpu-prof-dir=.data/profiles';
  const worker = await bench.startWorker({
    NODE_OPTIONS: WITHOUT_SEARCH.NODE_OPTIONS + profile,
    WORKER_PORT: String(port),
  });
  const seenBefore = (await sandbox.requests()).length;
  await awaitProgress(bench.db, ({ pages }) => pages > 2 * size, START_LIMIT_MS);
  if (isFull) await sleep(RAMP_MS);

  const begin = {
    at: performance.now(),
    pages: await pagesOfEach(bench.db),
    cpuMs: worker.usage()?.cpuMs ?? 0,
  };
  await readLag(port);
  const measuredMs = isFull ? MEASURED_MS : windowMs * ROOMY_WINDOWS;
  const among: number[] = [];
  for (let arrival = 0; arrival < ARRIVALS; arrival++) {
    await until(begin.at + (arrival + 1) * (measuredMs / (ARRIVALS + 1)));
    among.push(await arrive());
  }
  await until(begin.at + measuredMs);
  const { cpuMs = 0, rssBytes = 0 } = worker.usage() ?? {};
  const elapsedMs = performance.now() - begin.at;
  const lagMs = await readLag(port);
  const pages = await pagesOfEach(bench.db);
  const total = sum(instances.map((id) => (pages.get(id) ?? 0) - (begin.pages.get(id) ?? 0)));

  const journal = await sandbox.requests(seenBefore);
  const rowsOf = new Map<string, Counted[]>(companies.map(({ id }) => [id, []]));
  for (const row of journal) rowsOf.get(row.company_id ?? '')?.push(row);
  // Who was ahead when the look began is overtaken during it: what counts is what each has by its end.
  const copied = instances.map((id) => pages.get(id) ?? 0);
  const shares = isFull
    ? copied.map((one) => one / (sum(copied) / size))
    : [...rowsOf.values()].map((own) => shareOfLimit(own, windowMs));
  return {
    pagesPerS: (total / elapsedMs) * 1_000,
    cpuShare: (cpuMs - begin.cpuMs) / elapsedMs,
    cpuMsPerPage: (cpuMs - begin.cpuMs) / total,
    shares,
    refusals: journal.filter(({ status }) => status === 429).length,
    lagMs,
    rssMib: rssBytes / MIB,
    aloneMs: median(alone),
    amongMs: median(among),
  };
}

/**
 * Which share of what the limit allowed a company used, from its first window's begin to that of the last one; what was
 * lost between the end of a window and the begin of the next counts, too.
 */
function shareOfLimit(rows: readonly Counted[], windowMs: number): number {
  const windows = windowsOf(rows, windowMs);
  const [first, last] = [windows[0], windows.at(-1)];
  if (first === undefined || last === undefined || first === last) return 0;
  const requests = sum(windows.slice(0, -1).map(({ counted }) => counted));
  return requests / ((PARTNER_LIMIT * (last.start - first.start)) / windowMs);
}

function sum(all: readonly number[]): number {
  return all.reduce((total, one) => total + one, 0);
}

/** Sleeps until a moment of `performance.now()`, if that is still to come. */
function until(moment: number): Promise<void> {
  return sleep(Math.max(0, moment - performance.now()));
}

/** How late a worker's event loop was since this was asked before, in milliseconds; the 99th percentile. */
async function readLag(port: number): Promise<number> {
  const { body } = await request(`http://127.0.0.1:${port}/metrics`);
  const seconds = /^partner_app_nodejs_eventloop_lag_p99_seconds ([\d.e+-]+)$/m.exec(await body.text())?.[1];
  return Number(seconds) * 1_000;
}
