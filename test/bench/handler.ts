import { setTimeout as sleep } from 'node:timers/promises';
import { type Row, table } from './report.ts';
import type { Bench } from './run.ts';
import { askedDatabases, askedNumber, BUSY_HANDLER, type DatabaseKind, openStage } from './stage.ts';

const COMPANIES = 50;
/** More than the limit lets a worker read. */
const LISTS = { contacts: 1_000_000, conversations: 1_000_000, addon_rpm: 0 };
/** Two windows: the second one has no burst. */
const MEASURED_MS = 120_000;

/** Companies at their limit in one worker, beside a handler that is always busy. `handler:20,sqlite` asks for twenty. */
export const handler: Bench = async (write, rows) => {
  const companies = askedNumber(rows, COMPANIES);
  for (const kind of askedDatabases(rows)) {
    const none = await measure(kind, companies, 'none');
    const lines: Row[] = [{ handler: 'none', ...none, ratio: '1.00' }];
    for (const work of ['computes', ...(kind === 'sqlite' ? ['holds'] : [])]) {
      const measured = await measure(kind, companies, work);
      // The bench would measure nothing.
      if (measured.calls === 0) throw new Error('The handler was not called.');
      lines.push({ handler: work, ...measured, ratio: (measured.pages / none.pages).toFixed(2) });
    }
    write(`${companies} companies at their limit in one worker on ${kind}, for ${MEASURED_MS / 1_000} s
computes: each call of the handler takes a second of CPU. holds: its transaction takes 4.9 s. Goal of the ratio: 0.9.

${table(lines)}

`);
  }
};

async function measure(kind: DatabaseKind, companies: number, work: string) {
  await using stage = await openStage({ kind });
  const ids: string[] = [];
  while (ids.length < companies) ids.push(await stage.install(stage.addCompany(LISTS)));
  await stage.startPlainWorker(BUSY_HANDLER, { BENCH_WORK: work });
  for (const id of ids) await stage.app.control.syncNow(id);
  await sleep(MEASURED_MS);
  const runs = stage.db.selectFrom('runs').select(({ fn }) => fn.sum<number>('pages').as('pages'));
  const cursors = stage.db.selectFrom('consumers').where('consumer', '=', 'handler').where('cursor', '>', 0);
  const calls = await cursors.select(({ fn }) => fn.countAll<number>().as('calls')).executeTakeFirstOrThrow();
  return { pages: Number((await runs.executeTakeFirstOrThrow()).pages), calls: Number(calls.calls) };
}
