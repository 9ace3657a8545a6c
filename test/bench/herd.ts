import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../support/free-port.ts';
import { type Row, table } from './report.ts';
import type { Bench } from './run.ts';
import { askedDatabases, type DatabaseKind, openStage } from './stage.ts';

const SIZES = [1_000, 10_000];
/** Pages of a list: a long tail. */
const TAIL = [
  { every: 1_000, records: 100_000 },
  { every: 100, records: 10_000 },
  { every: 1, records: 250 },
];
const MEASURED_MS = 60_000;
const NEWCOMER_AT_MS = 10_000;

/** All companies fall due at once, with two workers. `herd:2000,postgres` asks for a size and a database. */
export const herd: Bench = async (write, rows) => {
  const asked = rows.filter((row) => /^\d+$/.test(row)).map(Number);
  for (const kind of askedDatabases(rows, ['postgres'])) {
    const lines: Row[] = [];
    for (const size of asked.length === 0 ? SIZES : asked) lines.push(await measure(kind, size));
    write(`all companies due at once on ${kind}, two workers\n\n${table(lines)}\n\n`);
  }
};

async function measure(kind: DatabaseKind, size: number): Promise<Row> {
  await using stage = await openStage({ kind });
  const { sandbox, app, db } = stage;
  for (let n = 0; n < size; n++) {
    const { records } = TAIL.find(({ every }) => n % every === every - 1) ?? TAIL[2] ?? { records: 1 };
    await stage.install(stage.addCompany({ contacts: records, conversations: records }));
  }
  const count = async () => {
    const { rows } = await db
      .selectFrom('runs')
      .select(({ fn }) => [fn.countAll<number>().as('runs'), fn.sum<number>('pages').as('pages')])
      .executeTakeFirstOrThrow()
      .then((row) => ({ rows: row }));
    return { runs: Number(rows.runs), pages: Number(rows.pages ?? 0) };
  };
  const ports = [await findFreePort(), await findFreePort()];
  const [first, ...others] = ports;
  const startedAt = performance.now();
  const mark = sandbox.requests().at(-1)?.n ?? 0;
  const workers = [await stage.startWorker({ WORKER_PORT: String(first) })];
  const readyAt = performance.now();
  for (const port of others) workers.push(await stage.startWorker({ WORKER_PORT: String(port) }));
  let begunMs: number | undefined;
  let firstPageMs: number | undefined;
  let newcomerMs: number | undefined;
  let hasCome = false;
  const samples: string[] = [];
  while (performance.now() - readyAt < MEASURED_MS) {
    const at = performance.now() - readyAt;
    const now = await count();
    if (now.runs >= 2 * size) begunMs ??= at;
    if (sandbox.requests(mark).length > 0) firstPageMs ??= at;
    if (at > NEWCOMER_AT_MS && !hasCome) {
      hasCome = true;
      void (async () => {
        const company = stage.addCompany({ contacts: 50, conversations: 50 });
        const id = await stage.install(company);
        const begun = performance.now();
        await app.control.syncNow(id);
        const mine = () =>
          sandbox
            .requests()
            .some(({ company_id, path }) => company_id === company.id && path === '/contacts');
        while (!mine()) await sleep(50);
        newcomerMs = performance.now() - begun;
      })();
    }
    samples.push(`${(at / 1000).toFixed(0)}s ${now.runs}/${now.pages}`);
    await sleep(2_000);
  }
  process.stderr.write(`${samples.join('  ')}\n`);
  const end = await count();
  const lag = async (port: number) => {
    const began = performance.now();
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const ms = performance.now() - began;
    const value = (name: string) =>
      Number(new RegExp(`${name} (\\S+)`).exec(text)?.[1] ?? Number.NaN) * 1_000;
    return {
      p99: value('partner_app_nodejs_eventloop_lag_p99_seconds'),
      max: value('partner_app_nodejs_eventloop_lag_max_seconds'),
      ms,
    };
  };
  const lags = await Promise.all(ports.map(lag));
  const refused = sandbox.requests(mark).filter(({ status }) => status === 429).length;
  const round = (ms: number | undefined) => (ms === undefined ? 'never' : `${(ms / 1_000).toFixed(1)} s`);
  return {
    companies: size,
    'worker ready': round(readyAt - startedAt),
    'first page': round(firstPageMs),
    'all runs begun': round(begunMs),
    'pages a second': (end.pages / (MEASURED_MS / 1_000)).toFixed(0),
    newcomer: round(newcomerMs),
    'loop delay p99, worst': lags
      .map(({ p99, max }) => `${p99.toFixed(0)}, ${max.toFixed(0)} ms`)
      .join(' · '),
    '/metrics': lags.map(({ ms }) => `${ms.toFixed(0)} ms`).join(' · '),
    '429s': refused,
  };
}
