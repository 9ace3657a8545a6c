import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, type Dispatcher, request } from 'undici';
import type { Bench } from './run.ts';
import { type BenchApp, openStage } from './support/bench-app.ts';
import { askedDatabases, type DatabaseKind } from './support/bench-database.ts';
import { median } from './support/numbers.ts';
import { table } from './table.ts';

const PAGE = 100;
/** Companies of 40 pages: of two lists alike, or of one list alone; the other one is an empty page then. */
const TWO_LISTS = { lists: 'two lists', contacts: 1_900, conversations: 1_900 };
const ONE_LIST = { lists: 'one list', contacts: 3_900, conversations: 0 };
/** What runs, how often. */
const RUNS = [
  { latencyMs: 40, ...TWO_LISTS, times: 7 },
  { latencyMs: 40, ...ONE_LIST, times: 5 },
  { latencyMs: 200, ...TWO_LISTS, times: 3 },
  { latencyMs: 200, ...ONE_LIST, times: 1 },
];
const LATENCIES_MS = [40, 200];
const WARM_UP = { contacts: 900, conversations: 900 };
const LOOK_EVERY_MS = 20;
const COMPLETE_LIMIT_MS = 60_000;
const GOAL = 1.1;

/** Walks a list to its end. @returns how many pages it has */
async function walk(first: string, accessToken: string, agent: Agent): Promise<number> {
  let pages = 0;
  for (let url: string | null = first; url !== null; pages++) {
    const answer: Dispatcher.ResponseData = await request(url, {
      headers: { authorization: `Bearer ${accessToken}` },
      dispatcher: agent,
    });
    const text: string = await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${text.slice(0, 300)}`);
    url = (JSON.parse(text) as { _pagination: { next: string | null } })._pagination.next;
  }
  return pages;
}

/** The bare loop: a cursor for each list, nothing stored. */
async function walkAll(apiUrl: string, accessToken: string, agent: Agent) {
  const startedAt = Date.now();
  const pages = await Promise.all(
    ['contacts', 'conversations'].map((list) => walk(`${apiUrl}/${list}?limit=${PAGE}`, accessToken, agent)),
  );
  return { ms: Date.now() - startedAt, pages: pages.reduce((sum, count) => sum + count, 0) };
}

/** Asks for a sync and waits until it is complete, by what the app says itself. */
async function syncAll(app: BenchApp, instanceId: string) {
  const startedAt = Date.now();
  await app.sync(instanceId);
  for (;;) {
    const status = await app.app.control.status(instanceId);
    const resources = Object.values(status?.resources ?? {});
    if (resources.length > 0 && resources.every(({ finished_at }) => finished_at !== null)) {
      const ends = resources.map(({ finished_at }) => Date.parse(finished_at ?? ''));
      const pages = resources.reduce((sum, resource) => sum + resource.pages, 0);
      return { ms: Math.max(...ends) - startedAt, pages };
    }
    if (Date.now() - startedAt > COMPLETE_LIMIT_MS)
      throw new Error(`not complete: ${JSON.stringify(status)}`);
    await sleep(LOOK_EVERY_MS);
  }
}

async function measure(kind: DatabaseKind, latencyMs: number) {
  await using stack = new AsyncDisposableStack();
  const { sandbox, bench: app } = await openStage(stack, { kind, latencyMs });
  await app.startWorker();
  const agent = new Agent();
  stack.defer(() => agent.destroy());
  const once = async (size: { contacts: number; conversations: number }) => {
    const company = await sandbox.addCompany(size);
    const grant = await sandbox.authorize(company);
    const instanceId = await app.install(company, grant);
    await app.identify(company, grant);
    // The company's own token has a limit of its own.
    const [token = ''] = company.api_tokens.map((own) => own.token);
    const [synced, walked] = await Promise.all([
      syncAll(app, instanceId),
      walkAll(sandbox.up.apiUrl, token, agent),
    ]);
    if (synced.pages !== walked.pages) throw new Error(`${synced.pages} pages, not ${walked.pages}`);
    return { synced: synced.ms, walked: walked.ms, pages: walked.pages };
  };
  await once(WARM_UP);
  const rows: Record<string, string | number>[] = [];
  for (const { times, lists, contacts, conversations } of RUNS.filter((run) => run.latencyMs === latencyMs)) {
    const runs: Awaited<ReturnType<typeof once>>[] = [];
    for (let run = 0; run < times; run++) runs.push(await once({ contacts, conversations }));
    const ratios = runs.map(({ synced, walked }) => synced / walked);
    rows.push({
      company: lists,
      'latency, ms': latencyMs,
      pages: runs[0]?.pages ?? 0,
      times,
      'complete, ms': median(runs.map(({ synced }) => synced)),
      'bare loop, ms': median(runs.map(({ walked }) => walked)),
      ratio: median(ratios).toFixed(3),
      'from – to': `${Math.min(...ratios).toFixed(3)} – ${Math.max(...ratios).toFixed(3)}`,
    });
  }
  return rows;
}

/** How long a company of 40 pages takes from the wish to sync until it is complete, beside what its latency alone takes. */
export const first: Bench = async (write, asked) => {
  for (const kind of askedDatabases(asked, ['sqlite'])) {
    const rows: Record<string, string | number>[] = [];
    for (const latencyMs of LATENCIES_MS) rows.push(...(await measure(kind, latencyMs)));
    write(`a company of 40 pages on ${kind}, from the end of its install until it is complete
Beside it, at the same time, a bare loop (undici, JSON.parse, a cursor for each list) through the same company's lists;
medians of so many times. Goal: a ratio of ${GOAL}.

${table(rows)}

`);
  }
};
