import { setTimeout as sleep } from 'node:timers/promises';
import { PARTNER_LIMIT } from '../../../src/contract/limits.ts';
import { findFreePort } from '../../../src/runtime/free-port.ts';
import { BenchApp, benchDir, startBenchRedis } from '../support/bench-app.ts';
import { BenchSandbox } from '../support/bench-sandbox.ts';
import { CopyWatch } from '../support/copy-watch.ts';
import { addCompanies, bareCompanies, installAll } from '../support/fleet.ts';
import { median } from '../support/numbers.ts';
import { shareOfLimit, windowsOf } from '../support/window-shares.ts';
import { readContacts } from './read-list.ts';
import { type LoopDelay, readLoopDelay } from './worker-metrics.ts';

/** What is measured. */
export interface FleetOrder {
  size: number;
  windowMs: number;
  latencyMs: number;
  /** Whether the companies want more than the core can do. */
  isFull: boolean;
  lists: { contacts: number; conversations: number };
}

/** What came of it. */
export interface FleetFigures {
  pagesPerS: number;
  /** Of one core. */
  cpuShare: number;
  /** Of what each company could have had: of the one that got least, and the one in the middle. */
  least: number;
  middle: number;
  refusals: number;
  loopDelayMs: LoopDelay;
  rssMib: number;
  /** A small company, with nothing else to do, and among the others. */
  alone: Arrival;
  among: Arrival;
}

/** How long a small company takes, in milliseconds. */
export interface Arrival {
  /** From its install to the end of its first sync. */
  syncMs: number;
  /** Directly afterwards, a plain client that reads the same pages. */
  readMs: number;
}

const SMALL = { contacts: 450, conversations: 0 };
const ARRIVALS = 7;
/** Not counted: the start of everything, and a window's first minute has all companies begin at the same time. */
const FULL_RAMP_MS = 10_000;
const FULL_MEASURED_MS = 50_000;
/** Begun windows to look at when the core is not full: the last one's begin ends the look. */
const ROOMY_WINDOWS = 2.3;
const MIB = 1024 ** 2;

/** One worker process and many companies. */
export async function measureFleet({
  size,
  windowMs,
  latencyMs,
  isFull,
  lists,
}: FleetOrder): Promise<FleetFigures> {
  const dir = benchDir();
  const sandbox = await BenchSandbox.start({ windowMs, latencyMs });
  const redis = await startBenchRedis(dir.path);
  const bench = await BenchApp.open(sandbox, redis.url, dir.path);
  const watch = new CopyWatch(bench.databasePath);
  const small = await addCompanies(sandbox, 2 * ARRIVALS + 1, SMALL);
  const arrive = async (): Promise<Arrival> => {
    const company = small.pop();
    if (company === undefined) throw new RangeError('no more small companies');
    const grant = await sandbox.authorize(company);
    const startedAt = performance.now();
    const id = await bench.install(company, grant);
    await bench.sync(id);
    await watch.complete(id);
    const syncMs = performance.now() - startedAt;
    const [plain] = bareCompanies([company]);
    return {
      syncMs,
      readMs: plain === undefined ? Number.NaN : await readContacts(sandbox.up.apiUrl, plain),
    };
  };
  try {
    const alone = await measureAlone(bench, arrive);
    const companies = await addCompanies(sandbox, size, lists);
    const instances = await installAll(bench, sandbox, companies);
    const port = await findFreePort();
    const worker = await bench.startWorker({ WORKER_PORT: String(port) });
    const seenBefore = (await sandbox.requests()).length;
    await watch.until(({ pages }) => pages > size, 60_000);
    if (isFull) await sleep(FULL_RAMP_MS);

    const begin = { at: performance.now(), pages: watch.pagesOfEach(), cpuMs: worker.usage()?.cpuMs ?? 0 };
    await readLoopDelay(port);
    const measuredMs = isFull ? FULL_MEASURED_MS : windowMs * ROOMY_WINDOWS;
    const among: Arrival[] = [];
    for (let arrival = 0; arrival < ARRIVALS; arrival++) {
      await until(begin.at + (arrival + 1) * (measuredMs / (ARRIVALS + 1)));
      among.push(await arrive());
    }
    await until(begin.at + measuredMs);
    const loopDelayMs = await readLoopDelay(port);
    const { cpuMs = 0, rssBytes = 0 } = worker.usage() ?? {};
    const elapsedMs = performance.now() - begin.at;
    const pages = watch.pagesOfEach();
    const pagesOf = (id: string) => (pages.get(id) ?? 0) - (begin.pages.get(id) ?? 0);
    const total = sum(instances.map(pagesOf));

    const journal = await sandbox.requests(seenBefore);
    const timesOf = new Map<string, number[]>(companies.map(({ id }) => [id, []]));
    for (const { company_id, at } of journal) timesOf.get(company_id ?? '')?.push(at);
    // Who was ahead when the look began is overtaken during it: what counts is what each has by its end.
    const copied = instances.map((id) => pages.get(id) ?? 0);
    const shares = isFull
      ? copied.map((one) => one / (sum(copied) / size))
      : [...timesOf.values()].map(
          (at) => shareOfLimit(windowsOf(at, windowMs), PARTNER_LIMIT, windowMs) ?? 0,
        );
    return {
      pagesPerS: (total / elapsedMs) * 1_000,
      cpuShare: (cpuMs - begin.cpuMs) / elapsedMs,
      least: Math.min(...shares),
      middle: median(shares),
      refusals: journal.filter(({ status }) => status === 429).length,
      loopDelayMs,
      rssMib: rssBytes / MIB,
      alone,
      among: middleOf(among),
    };
  } finally {
    watch.close();
    await bench.close();
    await redis.end();
    await sandbox.end();
    dir.remove();
  }
}

function sum(all: readonly number[]): number {
  return all.reduce((total, one) => total + one, 0);
}

/** Sleeps until a moment of `performance.now()`, if that is still to come. */
function until(moment: number): Promise<void> {
  return sleep(Math.max(0, moment - performance.now()));
}

/** With a worker that has nothing else to do, but has done it once before. */
async function measureAlone(bench: BenchApp, arrive: () => Promise<Arrival>): Promise<Arrival> {
  const worker = await bench.startWorker();
  await arrive();
  const alone: Arrival[] = [];
  for (let arrival = 0; arrival < ARRIVALS; arrival++) alone.push(await arrive());
  await worker.stop();
  return middleOf(alone);
}

function middleOf(all: readonly Arrival[]): Arrival {
  return { syncMs: median(all.map(({ syncMs }) => syncMs)), readMs: median(all.map(({ readMs }) => readMs)) };
}
