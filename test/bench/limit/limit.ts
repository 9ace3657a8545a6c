import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HAS_PROC } from '../support/process-usage.ts';
import { table } from '../table.ts';
import { CONDITIONS, type Condition, TIMED_PAGES } from './conditions.ts';
import type { Line, Measured } from './measure.ts';
import { runCondition, WINDOW_MS, WINDOWS } from './run-condition.ts';

const ROOT = join(import.meta.dirname, '../../..');
/** Where a run leaves what it saw, for the picture. */
export const RESULTS_DIR = join(ROOT, '.data/bench');
const LIBRARIES = ['bullmq', 'bottleneck', 'p-throttle', 'rate-limiter-flexible', 'undici', 'ioredis'];

function versions(): string {
  return LIBRARIES.map((name) => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8'));
    return `${name} ${version}`;
  }).join(', ');
}

function row({ label, isOurs, openForMs, ...line }: Line, condition: Condition) {
  return {
    who: isOurs ? `${label}, window open for ${openForMs / 1_000} s` : label,
    'share, %': (line.share * 100).toFixed(1),
    '429s': line.refused,
    '429s/window': line.refusedPerWindow.toFixed(1),
    'time, s': line.timedMs === undefined ? '–' : (line.timedMs / 1_000).toFixed(2),
    'ideal, s': (line.idealTimedMs / 1_000).toFixed(2),
    pages: line.pages,
    ...(condition.othersShare === undefined
      ? {}
      : {
          'other: served/window': line.othersPerWindow.served.toFixed(1),
          'other: 429s/window': line.othersPerWindow.refused.toFixed(1),
        }),
    'CPU, ms/page': HAS_PROC ? line.cpuMsPerPage.toFixed(2) : 'no /proc',
  };
}

function report({ condition, loopPerSecond, lines }: Measured): string {
  const pages = condition.timedPages ?? TIMED_PAGES;
  return `${condition.name}: ${condition.title}
The bare loop gets ${loopPerSecond.toFixed(1)} pages a second without a limit; time is that for ${pages} pages.

${table(lines.map((line) => row(line, condition)))}

`;
}

/**
 * Our budget and engine beside what else one could take, under the conditions of {@link CONDITIONS}: what share of what
 * limit and latency permit they get, and how often the service refuses.
 */
export async function limitBench(write: (text: string) => void, names: readonly string[]): Promise<void> {
  const unknown = names.filter((name) => !CONDITIONS.some((condition) => condition.name === name));
  if (unknown.length > 0) {
    throw new Error(
      `There is no row ${unknown.join(', ')}; there are: ${CONDITIONS.map(({ name }) => name).join(', ')}.`,
    );
  }
  write(`one company each, two lists, ${WINDOWS} windows of ${WINDOW_MS / 1_000} s, all at the same time
${versions()}
All counts are those of the sandbox's journal. The burst allowance is spent before. Of the peers, the last one stores its records.

`);
  mkdirSync(RESULTS_DIR, { recursive: true });
  for (const condition of CONDITIONS) {
    if (names.length > 0 && !names.includes(condition.name)) continue;
    const measured = await runCondition(condition);
    writeFileSync(join(RESULTS_DIR, `limit-${condition.name}.json`), JSON.stringify(measured));
    write(report(measured));
  }
}
