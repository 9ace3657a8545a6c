import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../../../src/runtime/free-port.ts';
import { BenchApp, benchDir, startBenchRedis } from '../support/bench-app.ts';
import { BenchSandbox } from '../support/bench-sandbox.ts';
import { CopyWatch } from '../support/copy-watch.ts';
import { addCompanies, installAll } from '../support/fleet.ts';
import { RedisMeter } from '../support/redis-meter.ts';
import { readMetrics } from './worker-metrics.ts';

const FEW = 20;
const MANY = 2_000;
const RETRY_AFTER_S = 600;
const SETTLE_MS = 2_000;
/** Has the worker collect its garbage when it is told to. */
const COLLECT = join(import.meta.dirname, 'collect-on-signal.ts');
const LONGEST_MS = 120_000;
const KB = 1_000;

/**
 * What a company costs that waits for its limit: the memory of a worker and of Redis with many of them less that with
 * few, divided by the difference. The service refuses every request for ten minutes, so all of them wait. Garbage is collected before.
 */
export async function measureWaiting(): Promise<string> {
  const few = await memoryWith(FEW);
  const many = await memoryWith(MANY);
  const each = (name: keyof typeof few) => ((many[name] - few[name]) / (MANY - FEW) / KB).toFixed(1);
  return `a company that waits for its limit: ${each('live')} KB of live memory in the worker (goal: under 50), ${each('rss')} KB of its RSS with what the allocator keeps from the rush before, ${each('redis')} KB in Redis (${MANY} companies less ${FEW}, both resources waiting)\n`;
}

async function memoryWith(companies: number): Promise<{ live: number; rss: number; redis: number }> {
  const dir = benchDir();
  const sandbox = await BenchSandbox.start();
  const redis = await startBenchRedis(dir.path);
  const meter = new RedisMeter(redis.url);
  const bench = await BenchApp.open(sandbox, redis.url, dir.path);
  const watch = new CopyWatch(bench.databasePath);
  try {
    const added = await addCompanies(sandbox, companies, { contacts: 1_000, conversations: 1_000 });
    for (const path of ['/contacts', '/conversations']) {
      const fault = { status: 429, headers: { 'retry-after': String(RETRY_AFTER_S) } };
      await sandbox.post('faults', { match: { path }, fault, times: 10 * MANY });
    }
    await installAll(bench, sandbox, added);
    const port = await findFreePort();
    const worker = await bench.startWorker({
      WORKER_PORT: String(port),
      NODE_OPTIONS: `--expose-gc --import ${COLLECT}`,
    });
    await watch.until(({ waiting }) => waiting === 2 * companies, LONGEST_MS);
    for (let round = 0; round < 2; round++) {
      await sleep(SETTLE_MS);
      process.kill(worker.pid, 'SIGUSR2');
    }
    await sleep(SETTLE_MS);
    const metric = await readMetrics(port);
    return {
      live: metric('nodejs_heap_size_used_bytes') + metric('nodejs_external_memory_bytes'),
      rss: worker.usage()?.rssBytes ?? Number.NaN,
      redis: await meter.memoryBytes(),
    };
  } finally {
    watch.close();
    meter.close();
    await bench.close();
    await redis.end();
    await sandbox.end();
    dir.remove();
  }
}
