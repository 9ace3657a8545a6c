import { describe, expect, it } from 'vitest';
import type { TestProcess } from '../support/spawn-entry.ts';
import { waitFor } from '../support/wait-for.ts';
import { query } from './support/database.ts';
import { type Change, HandlerReport, newest } from './support/handler-report.ts';
import { readService, syncAgain } from './support/lists.ts';
import { createWorld } from './support/world.ts';

const LISTS = ['contacts', 'conversations'] as const;

describe("34. Every record's newest state, its deletion included, reaches the handler at least once, in order of `seq`, through SIGKILLs, pauses and restarts.", async () => {
  it.concurrent('tells all, in order, whatever happens to the workers', async () => {
    const { world, report, start, killInCalls, killAny, stop } = await prepare('report');
    const { company, browser, id } = await world.installed({
      name: 'Told',
      contacts: 350,
      conversations: 250,
    });
    await killInCalls(3);
    await start();
    await world.press(browser, id, 'pause');
    await stop();
    await start();
    await world.press(browser, id, 'resume');
    await killAny();
    await world.waitForDelivery(browser, id);

    for (const resource of LISTS) {
      const records = { resource, create: 60, change: 150, delete: 100 };
      await world.control.call('POST', `companies/${company.id}/records`, records);
    }
    await stop();
    const synced = syncAgain(world, browser, id);
    await killInCalls(2);
    await start();
    await killAny();
    await synced;
    await world.waitForDelivery(browser, id);

    for (const list of LISTS) {
      const changes = report.changes(id, list);
      const { documents, deleted } = newest(changes);
      expect(documents).toEqual(await readService(world, company, list));
      expect(deleted.length).toBe(100);
      expect(changes.filter(({ change }) => change === 'deleted').every(hasNoDocument)).toBe(true);
      // What comes for the first time comes behind all that came before.
      const firsts = [...new Set(changes.map(({ seq }) => seq))];
      expect(firsts).toEqual(firsts.toSorted((one, other) => one - other));
    }
  });

  it.concurrent('what a handler writes in the transaction of its cursor is there exactly once', async () => {
    const { world, start, killInCalls, killAny } = await prepare('write-in-transaction');
    await query(
      world.databaseUrl,
      'create table handled (resource text not null, seq bigint not null, id text not null)',
    );
    const { company, browser, id } = await world.installed({
      name: 'Once',
      contacts: 350,
      conversations: 150,
    });
    await killInCalls(2);
    await start();
    await killAny();
    const { resources } = await world.waitForDelivery(browser, id);
    for (const list of LISTS) {
      expect(resources[list].handler).toMatchObject({ dead_letters: 0, last_error: null });
      const rows = await query(world.databaseUrl, 'select id from handled where resource = $1', [list]);
      const documents = await readService(world, company, list);
      expect(rows.map((row) => row.id).sort()).toEqual(documents.map((text) => JSON.parse(text).id).sort());
    }
  });
});

/** A web process and workers with a handler. */
async function prepare(handler: string) {
  const world = await createWorld({ sandbox: { windowMs: 1_000, latencyMs: 5 } });
  const report = new HandlerReport(handler);
  const { options } = report;
  // A kill in the middle of a suspect's call counts as a try.
  options.env.HANDLER_RETRY_SECONDS = '1,1,1,1,1';
  const stuckAt = (call: number) => ({ ...options, env: { ...options.env, TEST_STUCK_AT: String(call) } });
  await world.startWeb(options);
  const workers = new Map<number, TestProcess>();
  const start = async (more = options) => {
    const worker = await world.startWorker(more);
    workers.set(worker.pid, worker);
  };
  const kill = async (pid: number) => {
    const worker = workers.get(pid);
    workers.delete(pid);
    expect(await worker?.stop('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' });
  };
  return {
    world,
    report,
    start,
    /** Kills a worker in the middle of its first or third call, and so on. */
    async killInCalls(kills: number) {
      for (let at = 0; at < kills; at++) {
        await start(stuckAt(1 + 2 * (at % 2)));
        const isStuck = () => report.calls().find((call) => call.isStuck && workers.has(call.worker));
        const call = await waitFor(isStuck, 'a call that does not end');
        await kill(call.worker);
        await waitFor(() => !isAlive(call.pid), 'the end of its delivery process');
      }
    },
    /** Kills a worker whatever it does. */
    async killAny() {
      const [pid = 0] = workers.keys();
      await start();
      await kill(pid);
    },
    /** Ends all workers in order. */
    async stop() {
      for (const worker of workers.values()) expect((await worker.stop()).code).toBe(0);
      workers.clear();
    },
  };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function hasNoDocument({ document }: Change): boolean {
  return document === null;
}
