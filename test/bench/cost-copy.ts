import { INDEX_THREAD } from '../../jobs/index-thread-data.ts';
import { BenchApp, benchDir, startBenchRedis } from './support/bench-app.ts';
import type { BenchCompany, BenchSandbox } from './support/bench-sandbox.ts';
import { CopyWatch } from './support/copy-watch.ts';
import { installAll } from './support/fleet.ts';
import { threadCpuMs } from './support/process-usage.ts';
import { RedisMeter } from './support/redis-meter.ts';

const LONGEST_MS = 120_000;

/** What copying everything once cost. */
export interface CopyCost {
  pages: number;
  /** Until the last page was stored. */
  wallMs: number;
  /** Time on a processor of the worker until then without the thread of the search's index, in milliseconds. */
  storedCpuMs: number;
  /** Time on a processor of the index's thread until then. */
  indexCpuMs: number;
  redisCpuMs: number;
  redisCalls: number;
}

/**
 * Copies all companies from nothing, with one worker process on an empty database and an empty Redis.
 *
 * @param options.profileTo a directory for a CPU profile of the worker
 */
export async function copyOnce(
  sandbox: BenchSandbox,
  companies: readonly BenchCompany[],
  options: { profileTo?: string } = {},
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
    const index = () => threadCpuMs(worker.pid, INDEX_THREAD);
    const cpu = () => (worker.usage()?.cpuMs ?? Number.NaN) - index();
    const before = {
      cpu: cpu(),
      index: index(),
      redis: await meter.cpuMs(),
      calls: await meter.calls(),
      at: performance.now(),
    };
    const { pages } = await watch.until(({ runs, finished }) => runs > 0 && finished === runs, LONGEST_MS);
    const wallMs = performance.now() - before.at;
    const storedCpuMs = cpu() - before.cpu;
    const indexCpuMs = index() - before.index;
    const redisCpuMs = (await meter.cpuMs()) - before.redis;
    const redisCalls = (await meter.calls()) - before.calls;
    return { pages, wallMs, storedCpuMs, indexCpuMs, redisCpuMs, redisCalls };
  } finally {
    watch.close();
    meter.close();
    await bench.close();
    await redis.end();
    dir.remove();
  }
}
