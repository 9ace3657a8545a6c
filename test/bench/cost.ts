import type { BareDone, BareList } from './bare-loop.ts';
import { listsOf, runBareLoop } from './bare-run.ts';
import { type CopyCost, copyOnce } from './cost-copy.ts';
import type { Bench } from './run.ts';
import { benchDir, startBenchRedis } from './support/bench-app.ts';
import { BenchSandbox } from './support/bench-sandbox.ts';
import { addCompanies, bareCompanies } from './support/fleet.ts';
import { median } from './support/numbers.ts';
import { table } from './table.ts';

const COMPANIES = 30;
/** Of each resource: with both of them below what a window allows, so that nobody waits for the limit. */
const PAGES_EACH = 50;
const ROUNDS = 3;
/** As many requests of the bare loop are under way at the same time as runs of a worker. */
const AT_ONCE = 50;
const RESOURCES = ['contacts', 'conversations'];

interface Round extends CopyCost {
  barePages: number;
  bareCpuMs: number;
  bareWallMs: number;
  /** Of the loop with all duties. */
  dutifulPages: number;
  dutifulCpuMs: number;
}

function perPage(round: Round) {
  return {
    ours: round.storedCpuMs / round.pages,
    all: (round.storedCpuMs + round.indexCpuMs) / round.pages,
    index: round.indexCpuMs / round.pages,
    bare: round.bareCpuMs / round.barePages,
    dutiful: round.dutifulCpuMs / round.dutifulPages,
    redis: round.redisCpuMs / round.pages,
  };
}

/**
 * CPU of a worker and of Redis for a page of 100 records, against the bare loop over the same lists of the same
 * companies, in turns.
 */
export const cost: Bench = async (write, rows) => {
  const companies = Number(rows.find((row) => /^\d+$/.test(row)) ?? COMPANIES);
  const profile = rows.includes('profile');
  const sandbox = await BenchSandbox.start();
  try {
    const records = PAGES_EACH * 100;
    const rounds: Round[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      // New ones each time: what is left of the limit of others would slow us down.
      const added = await addCompanies(sandbox, companies, { contacts: records, conversations: records });
      const lists = listsOf(sandbox.up.apiUrl, bareCompanies(added), RESOURCES);
      const bare = await runBareLoop({ lists, atOnce: AT_ONCE });
      const others = await addCompanies(sandbox, companies, { contacts: records, conversations: records });
      const dutiful = await runDutifulLoop(listsOf(sandbox.up.apiUrl, bareCompanies(others), RESOURCES));
      const ours = await copyOnce(sandbox, added, {
        ...(profile ? { profileTo: '.data/profiles' } : {}),
      });
      rounds.push({
        ...ours,
        barePages: bare.pages,
        bareCpuMs: bare.cpuMs,
        bareWallMs: bare.wallMs,
        dutifulPages: dutiful.pages,
        dutifulCpuMs: dutiful.cpuMs,
      });
    }
    write(report(rounds, companies));
  } finally {
    await sandbox.end();
  }
};

/** The bare loop with a Redis of its own. */
async function runDutifulLoop(lists: BareList[]): Promise<BareDone> {
  const dir = benchDir();
  const redis = await startBenchRedis(dir.path);
  try {
    return await runBareLoop({ lists, atOnce: AT_ONCE, dutiesWith: redis.url });
  } finally {
    await redis.end();
    dir.remove();
  }
}

function report(rounds: readonly Round[], companies: number): string {
  const lines = rounds.map((round) => {
    const { ours, all, index, bare, dutiful, redis } = perPage(round);
    return {
      pages: round.pages,
      'worker, ms/page': ours.toFixed(2),
      'bare loop, ms/page': bare.toFixed(2),
      'with duties, ms/page': dutiful.toFixed(2),
      'worker / bare': (ours / bare).toFixed(2),
      'with its thread / bare': (all / bare).toFixed(2),
      'worker / with duties': (ours / dutiful).toFixed(2),
      'its thread, ms/page': index.toFixed(2),
      'Redis, ms/page': redis.toFixed(3),
      'Redis calls/page': (round.redisCalls / round.pages).toFixed(1),
      'worker, pages/s': (round.pages / round.wallMs) * 1_000,
      'bare loop, pages/s': (round.barePages / round.bareWallMs) * 1_000,
    };
  });
  const each = rounds.map((round) => perPage(round));
  const ratio = median(each.map(({ ours, bare }) => ours / bare));
  const withThread = median(each.map(({ all, bare }) => all / bare));
  const engine = median(each.map(({ ours, dutiful }) => ours / dutiful));
  const redis = median(each.map((one) => one.redis));
  return `CPU per page of 100 records, worker and bare loop in turns
${companies} companies with ${PAGES_EACH} pages of contacts and of conversations, no latency, nobody at the limit.
With duties: the same loop, which asks the budget for each page, compares by hashes, and writes under a fence what changed, what was seen and what is to be indexed.
The thread behind the pages, which keeps the index of the search up and copies the log into the database, is counted apart.

${table(lines)}

Median: a page in the store takes ${ratio.toFixed(2)} times the bare loop's CPU, ${withThread.toFixed(2)} times with the thread (goal: under 1.3), and ${engine.toFixed(2)} times that of the loop with the same duties; Redis ${redis.toFixed(3)} ms a page (goal: under 0.2).
`;
}
