import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { query } from './support/database.ts';
import { type Change, HandlerReport, newest } from './support/handler-report.ts';
import { readService, syncAgain } from './support/lists.ts';
import type { TestProcess } from './support/processes.ts';
import { createWorld } from './support/world.ts';

const LISTS = ['contacts', 'conversations'] as const;
/** How long a call of the handler takes: it is killed meanwhile. */
const WORK_MS = 60;

describe("34. Every record's newest state, its deletion included, reaches the handler at least once, in order of `seq`, through SIGKILLs, pauses and restarts.", async () => {
  it.concurrent('tells all, in order, whatever happens to the workers', async () => {
    const { world, report, killInCall, restart } = await prepare('report');
    const company = await world.control.addCompany({ name: 'Told', contacts: 1_050, conversations: 550 });
    const browser = world.browser();
    const id = await world.install(browser, company);
    for (let kills = 0; kills < 4; kills++) await killInCall();
    await world.press(browser, id, 'pause');
    await restart();
    const told = report.calls().length;
    await world.press(browser, id, 'resume');
    await world.waitForDelivery(browser, id);
    expect(report.calls().length).toBeGreaterThan(told);

    for (const resource of LISTS) {
      const records = { resource, create: 60, change: 300, delete: 200 };
      await world.control.call('POST', `companies/${company.id}/records`, records);
    }
    const synced = syncAgain(world, browser, id);
    for (let kills = 0; kills < 3; kills++) await killInCall();
    await synced;
    await world.waitForDelivery(browser, id);

    for (const list of LISTS) {
      const changes = report.changes(id, list);
      const { documents, deleted } = newest(changes);
      expect(documents).toEqual(await readService(world, company, list));
      expect(deleted.length).toBe(200);
      expect(changes.filter(({ change }) => change === 'deleted').every(hasNoDocument)).toBe(true);
      // What comes for the first time comes behind all that came before.
      const firsts = [...new Set(changes.map(({ seq }) => seq))];
      expect(firsts).toEqual(firsts.toSorted((one, other) => one - other));
    }
  });

  it.concurrent('what a handler writes in the transaction of its cursor is there exactly once', async () => {
    const { world, killInCall } = await prepare('write-in-transaction');
    await query(
      world.databaseUrl,
      'create table handled (resource text not null, seq bigint not null, id text not null)',
    );
    const company = await world.control.addCompany({ name: 'Once', contacts: 1_050, conversations: 550 });
    const browser = world.browser();
    const id = await world.install(browser, company);
    for (let kills = 0; kills < 5; kills++) await killInCall();
    const { resources } = await world.waitForDelivery(browser, id);
    for (const list of LISTS) {
      expect(resources[list].handler).toMatchObject({ dead_letters: 0, last_error: null });
      const rows = await query(world.databaseUrl, 'select id from handled where resource = $1', [list]);
      const documents = await readService(world, company, list);
      expect(rows.map((row) => row.id).sort()).toEqual(documents.map((text) => JSON.parse(text).id).sort());
    }
  });
});

/** Three workers with a handler, and a web process. */
async function prepare(handler: string) {
  const world = await createWorld({ sandbox: { windowMs: 1_000, latencyMs: 5 } });
  const report = new HandlerReport(handler, WORK_MS);
  await world.startWeb(report.options);
  const start = () => world.startWorker(report.options);
  const workers: TestProcess[] = await Promise.all([start(), start(), start()]);
  const starting: Promise<unknown>[] = [];
  return {
    world,
    report,
    /** Kills the worker that is in a call, or has just ended it, and starts another one. */
    async killInCall() {
      if (workers.length === 0) await Promise.all(starting.splice(0));
      const pid = await report.nextCall();
      await sleep(randomInt(WORK_MS));
      const at = workers.findIndex((worker) => worker.pid === pid);
      expect(await workers.splice(at, 1)[0]?.stop('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' });
      // The others go on while it starts.
      starting.push(start().then((worker) => workers.push(worker)));
    },
    /** Ends all workers in order, and starts others. */
    async restart() {
      await Promise.all(starting.splice(0));
      for (const { code } of await Promise.all(workers.splice(0).map((worker) => worker.stop())))
        expect(code).toBe(0);
      workers.push(await start(), await start(), await start());
    },
  };
}

function hasNoDocument({ document }: Change): boolean {
  return document === null;
}
