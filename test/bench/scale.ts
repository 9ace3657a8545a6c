import { PARTNER_LIMIT, WINDOW_MS } from '../../src/contract/limits.ts';
import { listsOf, runBareLoop } from './bare-run.ts';
import type { Bench } from './run.ts';
import { measureFleet } from './scale/measure-fleet.ts';
import { measureWaiting } from './scale/waiting-memory.ts';
import { BenchSandbox } from './support/bench-sandbox.ts';
import { addCompanies, bareCompanies } from './support/fleet.ts';
import { table } from './table.ts';

const SIZES = [100, 500, 2_000];
/** More than anyone comes to: a list's length costs nothing until it is read. */
const RECORDS = 1_000_000;
const RESOURCES = ['contacts', 'conversations'];
const AT_ONCE = 50;
const BARE_MS = 30_000;
/** The smallest size leaves the core idle for this share of the time, as far as the bare loop would. */
const LOAD = 0.6;

/**
 * Many companies at once in one worker process, with the bare loop over as many companies before it. The window is a
 * minute, except for the smallest size: there it is as long as leaves the core something to spare. `scale:500,latency40`
 * asks for one size, and for a service that takes its time.
 */
export const scale: Bench = async (write, rows) => {
  const asked = rows.filter((row) => /^\d+$/.test(row)).map(Number);
  const sizes = asked.length === 0 && !rows.includes('memory') ? SIZES : asked;
  const lines: Record<string, string | number>[] = [];
  const latencyMs = Number(rows.find((row) => /^latency\d+$/.test(row))?.slice('latency'.length) ?? 0);
  for (const size of sizes) lines.push(await measureSize(size, latencyMs));
  if (lines.length > 0) {
    write(`companies at once in one worker process, ${latencyMs === 0 ? 'no latency' : `${latencyMs} ms of latency`}
Ratio: the limit of the smallest size is ${LOAD} of what the loop does.
Shares of the limit: of the smallest size, from the service's journal, gaps between windows counted; beyond what the core can do, of an even share of what it did by the end.
A small company: from its install to the end of its first sync, of five pages; the middle one of seven.
Its pages read: by a plain client of its own, directly afterwards, which does nothing with them; what the service alone takes.

${table(lines)}
`);
  }
  if (asked.length === 0) write(`\n${await measureWaiting()}`);
};

async function measureSize(size: number, latencyMs: number): Promise<Record<string, string | number>> {
  const lists = { contacts: RECORDS, conversations: RECORDS };
  const bareSandbox = await BenchSandbox.start({ latencyMs });
  const bareRate = await (async () => {
    try {
      const companies = bareCompanies(await addCompanies(bareSandbox, size, lists));
      const order = { lists: listsOf(bareSandbox.up.apiUrl, companies, RESOURCES), atOnce: AT_ONCE };
      const bare = await runBareLoop({ ...order, forMs: BARE_MS });
      return (bare.pages / bare.wallMs) * 1_000;
    } finally {
      await bareSandbox.end();
    }
  })();
  // Rounded up to whole seconds.
  const roomyMs = Math.ceil((size * PARTNER_LIMIT) / (LOAD * bareRate)) * 1_000;
  const isFull = size > (SIZES[0] ?? 0);
  const windowMs = isFull ? WINDOW_MS : roomyMs;
  const fleet = await measureFleet({ size, windowMs, latencyMs, isFull, lists });
  return {
    companies: size,
    'window, s': windowMs / 1_000,
    'pages/s': fleet.pagesPerS,
    'bare loop, pages/s': bareRate,
    ratio: (fleet.pagesPerS / bareRate).toFixed(2) + (isFull ? '' : ` of ${LOAD}`),
    'CPU of the worker': `${(fleet.cpuShare * 100).toFixed(0)}%`,
    'share, least': `${(fleet.least * 100).toFixed(1)}%`,
    'share, median': `${(fleet.middle * 100).toFixed(1)}%`,
    '429s': fleet.refusals,
    'loop delay p50, ms': fleet.loopDelayMs.p50.toFixed(1),
    'p99, ms': fleet.loopDelayMs.p99.toFixed(1),
    'RSS, MiB': fleet.rssMib,
    'small one alone, s': (fleet.alone.syncMs / 1_000).toFixed(2),
    'in the middle, s': (fleet.among.syncMs / 1_000).toFixed(2),
    times: (fleet.among.syncMs / fleet.alone.syncMs).toFixed(2),
    'its pages read alone, s': (fleet.alone.readMs / 1_000).toFixed(2),
    'read in the middle, s': (fleet.among.readMs / 1_000).toFixed(2),
    'times, read': (fleet.among.readMs / fleet.alone.readMs).toFixed(2),
  };
}
