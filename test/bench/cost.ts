import type { Bench } from './run.ts';
import { storeCost } from './store-cost.ts';
import { listsOf, runBareLoop } from './support/bare-run.ts';
import { openStage, WITHOUT_SEARCH } from './support/bench-app.ts';
import { askedDatabases, DATABASES, type DatabaseKind } from './support/bench-database.ts';
import { awaitProgress } from './support/copy-progress.ts';
import { addCompanies, bareCompanies, installAll } from './support/fleet.ts';
import { median } from './support/numbers.ts';
import { RedisMeter } from './support/redis-meter.ts';
import { table } from './table.ts';

const COMPANIES = 30;
/** Of each resource: with both of them below what a window allows, so that nobody waits for the limit. */
const PAGES_EACH = 50;
const ROUNDS = 3;
/** As many requests of the bare loop are under way at the same time as runs of a worker. */
const AT_ONCE = 50;
const LONGEST_MS = 240_000;
const GOAL: Record<DatabaseKind, number> = { sqlite: 1.3, postgres: 2 };

/** What copying everything once cost; CPU in milliseconds. */
interface Round {
  pages: number;
  cpuMs: number;
  wallMs: number;
  redisCpuMs: number;
  redisCalls: number;
  bare: { pages: number; cpuMs: number; wallMs: number };
}

/**
 * CPU of a worker and of Redis for a page of 100 records, against the bare loop over the same lists of the same
 * companies on the same kind of database, in turns; and what the store alone takes of it.
 */
export const cost: Bench = async (write, rows) => {
  const size = Number(rows.find((row) => /^\d+$/.test(row)) ?? COMPANIES);
  for (const kind of askedDatabases(rows, DATABASES)) {
    write(await storeCost(kind));
    if (rows.includes('store')) continue;
    const rounds: Round[] = [];
    for (let round = 0; round < ROUNDS; round++)
      rounds.push(await measure(kind, size, rows.includes('profile')));
    write(report(kind, rounds, size));
  }
};

/** @param profiles whether the worker leaves a CPU profile in `.data/profiles` */
async function measure(kind: DatabaseKind, size: number, profiles: boolean): Promise<Round> {
  await using stack = new AsyncDisposableStack();
  const { dir, databases, redisUrl, sandbox, bench } = await openStage(stack, { kind });
  const records = PAGES_EACH * 100;
  const companies = await addCompanies(sandbox, size, { contacts: records, conversations: records });
  const lists = listsOf(sandbox.up.apiUrl, bareCompanies(companies));
  const bare = await runBareLoop({ databaseUrl: await databases.create(dir), lists, atOnce: AT_ONCE });
  await installAll(bench, sandbox, companies);
  const meter = new RedisMeter(redisUrl);
  stack.defer(() => meter.close());
  const worker = await bench.startWorker({
    NODE_OPTIONS: WITHOUT_SEARCH.NODE_OPTIONS + (profiles ? ' --cpu-prof --cpu-prof-dir=.data/profiles' : ''),
  });
  const cpu = () => worker.usage()?.cpuMs ?? Number.NaN;
  const before = {
    cpu: cpu(),
    redis: await meter.cpuMs(),
    calls: await meter.calls(),
    at: performance.now(),
  };
  const { pages } = await awaitProgress(
    bench.db,
    (progress) => progress.lists === 2 * size && progress.finished === progress.lists,
    LONGEST_MS,
  );
  return {
    pages,
    cpuMs: cpu() - before.cpu,
    wallMs: performance.now() - before.at,
    redisCpuMs: (await meter.cpuMs()) - before.redis,
    redisCalls: (await meter.calls()) - before.calls,
    bare,
  };
}

function report(kind: DatabaseKind, rounds: readonly Round[], size: number): string {
  const ratioOf = ({ cpuMs, pages, bare }: Round) => cpuMs / pages / (bare.cpuMs / bare.pages);
  const lines = rounds.map((round) => ({
    pages: round.pages,
    'worker, ms/page': (round.cpuMs / round.pages).toFixed(2),
    'bare loop, ms/page': (round.bare.cpuMs / round.bare.pages).toFixed(2),
    ratio: ratioOf(round).toFixed(2),
    'Redis, ms/page': (round.redisCpuMs / round.pages).toFixed(3),
    'Redis calls/page': (round.redisCalls / round.pages).toFixed(1),
    'worker, pages/s': (round.pages / round.wallMs) * 1_000,
    'bare loop, pages/s': (round.bare.pages / round.bare.wallMs) * 1_000,
  }));
  return `CPU of a page of 100 records on ${kind}, without the search index; the bare loop before it
${size} companies with ${PAGES_EACH} pages of contacts and of conversations, no latency, nobody at the limit.

${table(lines)}

Median: ${median(rounds.map(ratioOf)).toFixed(2)} times the bare loop's CPU (goal: ${GOAL[kind]}).

`;
}
