import { median, type Row, sum, table } from './report.ts';
import type { Bench } from './run.ts';
import { askedDatabases, awaitRuns, bareLists, type DatabaseKind, openStage } from './stage.ts';

/** Companies of 40 pages. A list without records is one empty page. */
const SIZES = {
  'two lists': { contacts: 1_900, conversations: 1_900 },
  'one list': { contacts: 3_900, conversations: 0 },
};
const WARM_UP = { contacts: 900, conversations: 900 };
const GOAL = 1.1;

/** How long a company of 40 pages takes from the end of its install until it is complete. */
export const first: Bench = async (write, rows) => {
  for (const kind of askedDatabases(rows, ['sqlite'])) {
    const lines = [...(await measure(kind, 40, 5)), ...(await measure(kind, 200, 2))];
    write(`a company of 40 pages on ${kind}, from the end of its install until it is complete
A bare loop that stores nothing reads the lists of the same company at the same time. Medians. Goal: a ratio of ${GOAL}.

${table(lines)}

`);
  }
};

async function measure(kind: DatabaseKind, latencyMs: number, times: number): Promise<Row[]> {
  await using stage = await openStage({ kind, latencyMs });
  const { sandbox, app, db } = stage;
  await stage.startWorker();
  const walk = stage.startBareLoop();
  const once = async (size: { contacts: number; conversations: number }) => {
    const company = stage.addCompany(size);
    const id = await stage.install(company);
    const sync = async () => {
      const startedAt = Date.now();
      await app.control.syncNow(id);
      await awaitRuns(db, id);
      const resources = Object.values((await app.status.read(id))?.resources ?? {});
      const endedAt = Math.max(...resources.map(({ finished_at }) => Date.parse(finished_at ?? '')));
      return { ms: endedAt - startedAt, pages: sum(resources.map(({ pages }) => pages)) };
    };
    const lists = bareLists(sandbox.apiUrl, [company]);
    const [synced, walked] = await Promise.all([sync(), walk({ lists, atOnce: 2 })]);
    if (synced.pages !== walked.pages) throw new Error(`${synced.pages} pages, not ${walked.pages}`);
    return { ms: synced.ms, bareMs: walked.wallMs, pages: walked.pages };
  };
  await once(WARM_UP);
  const lines: Row[] = [];
  for (const [company, size] of Object.entries(SIZES)) {
    const runs: Awaited<ReturnType<typeof once>>[] = [];
    while (runs.length < times) runs.push(await once(size));
    const ratios = runs.map(({ ms, bareMs }) => ms / bareMs);
    lines.push({
      company,
      'latency, ms': latencyMs,
      pages: runs[0]?.pages ?? 0,
      times,
      'complete, ms': median(runs.map(({ ms }) => ms)),
      'bare loop, ms': median(runs.map(({ bareMs }) => bareMs)),
      ratio: median(ratios).toFixed(3),
      'from – to': `${Math.min(...ratios).toFixed(3)} – ${Math.max(...ratios).toFixed(3)}`,
    });
  }
  return lines;
}
