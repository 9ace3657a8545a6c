import { SEARCH_CONSUMER } from '../../src/store/changes.ts';
import { openStores } from '../../src/store/stores.ts';
import { median, type Row, table } from './report.ts';
import type { Bench } from './run.ts';
import {
  askedDatabases,
  askedNumber,
  awaitConsumers,
  awaitRuns,
  type DatabaseKind,
  openStage,
} from './stage.ts';

const RESOURCE = 'contacts';
const ROWS_PER_PAGE = 50;
const TIMES = 7;
/** Short, so that the limit does not hold the worker up. */
const WINDOW_MS = 250;

/** A worker copies a million contacts; this process reads them as the web app does. */
export const million: Bench = async (write, rows) => {
  const records = askedNumber(rows, 1_000_000);
  for (const kind of askedDatabases(rows)) {
    const lines = await measure(kind, records);
    write(`${records.toLocaleString('en')} contacts of one company on ${kind}; reads: median of ${TIMES}

${table(lines)}

`);
  }
};

async function measure(kind: DatabaseKind, records: number): Promise<Row[]> {
  await using stage = await openStage({ kind, windowMs: WINDOW_MS });
  const { app, db } = stage;
  const id = await stage.install(stage.addCompany({ contacts: records, conversations: 0 }));
  await stage.startWorker();
  const perSecond = async (work: () => Promise<unknown>) => {
    const startedAt = performance.now();
    await work();
    const seconds = (performance.now() - startedAt) / 1_000;
    return `${Math.round(records / seconds).toLocaleString('en')} records/s (${seconds.toFixed(0)} s)`;
  };
  const sync = async () => {
    await app.control.syncNow(id);
    await awaitRuns(db);
    // The index follows while the run goes on.
    await awaitConsumers(db, [SEARCH_CONSUMER]);
  };
  const lines: Row[] = [];
  const add = (what: string, figure: string) => lines.push({ what, figure });
  add('first run, with the index for the search', await perSecond(sync));

  const store = openStores(db).records;
  const pages = Math.ceil(records / ROWS_PER_PAGE);
  const browse = (page: number, search?: string) => {
    const range = { offset: (page - 1) * ROWS_PER_PAGE, limit: ROWS_PER_PAGE };
    return store.browse(id, RESOURCE, search === undefined ? range : { ...range, search });
  };
  const [middle] = (await browse(Math.ceil(pages / 2))).records;
  const contact = JSON.parse(middle?.document ?? '{}');
  const rare: string = contact.handles[0].handle;
  const { city, plan } = contact.custom_fields;
  const reads: Record<string, () => Promise<unknown>> = {
    dashboard: () => app.status.read(id),
    'browse, page 1': () => browse(1),
    'browse, page 500': () => browse(500),
    'browse, the last page': () => browse(pages),
    'search, a word that one record has': () => browse(1, rare),
    'search, a word that many have': () => browse(1, city),
    'search, a word that a third has': () => browse(1, plan),
    'search, a word that none has': () => browse(1, 'zzqxjkv'),
  };
  for (const [what, read] of Object.entries(reads)) {
    const times: number[] = [];
    while (times.length < TIMES) {
      const startedAt = performance.now();
      await read();
      times.push(performance.now() - startedAt);
    }
    add(what, `${median(times).toFixed(1)} ms`);
  }
  const download = async () => {
    for await (const { document } of store.stream(id, RESOURCE)) if (document === '') break;
  };
  add('download', await perSecond(download));
  return lines;
}
