import { BenchApp, benchDir, startBenchRedis } from './support/bench-app.ts';
import type { BenchCompany, BenchSandbox } from './support/bench-sandbox.ts';
import { CopyWatch } from './support/copy-watch.ts';
import { installAll } from './support/fleet.ts';
import { RedisMeter } from './support/redis-meter.ts';

const LONGEST_MS = 120_000;

/** What copying everything once cost. */
export interface CopyCost {
  pages: number;
  /** Until the last page was stored. */
  wallMs: number;
  /** Time on a processor of the worker until then, in milliseconds. */
  storedCpuMs: number;
  records: number;
  /** How many of them were in the index of the search by then: that is part of the time above. */
  indexed: number;
  /** What the index of the search took after that, until it held everything; if that was waited for. */
  indexCpuMs: number | undefined;
  redisCpuMs: number;
  redisCalls: number;
}

/**
 * Copies all companies from nothing, with one worker process on an empty database and an empty Redis.
 *
 * @param options.profileTo a directory for a CPU profile of the worker
 * @param options.untilSearchable waits for the index of the search, too
 */
export async function copyOnce(
  sandbox: BenchSandbox,
  companies: readonly BenchCompany[],
  options: { profileTo?: string; untilSearchable?: boolean } = {},
): Promise<CopyCost> {
  const dir = benchDir();
  const redis = await startBenchRedis(dir.path);
  const bench = await BenchApp.open(sandbox, redis.url, dir.path);
  const meter = new RedisMeter(redis.url);
  const watch = new CopyWatch(bench.databasePath);
  try {
    await installAll(bench, sandbox, companies);
    const worker = await bench.startWorker(
      options.profileTo === undefined
        ? {}
        : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${options.profileTo}` },
    );
    const cpu = () => worker.usage()?.cpuMs ?? Number.NaN;
    const before = {
      cpu: cpu(),
      redis: await meter.cpuMs(),
      calls: await meter.calls(),
      at: performance.now(),
    };
    const { pages, records } = await watch.until(
      ({ runs, finished }) => runs > 0 && finished === runs,
      LONGEST_MS,
    );
    const wallMs = performance.now() - before.at;
    const storedCpuMs = cpu() - before.cpu;
    const redisCpuMs = (await meter.cpuMs()) - before.redis;
    const redisCalls = (await meter.calls()) - before.calls;
    const indexed = records - watch.toIndex();
    const storedAt = cpu();
    if (options.untilSearchable) await watch.indexed();
    const indexCpuMs = options.untilSearchable ? cpu() - storedAt : undefined;
    return { pages, records, wallMs, storedCpuMs, indexed, indexCpuMs, redisCpuMs, redisCalls };
  } finally {
    watch.close();
    meter.close();
    await bench.close();
    await redis.end();
    dir.remove();
  }
}
