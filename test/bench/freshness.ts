import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PARTNER_LIMIT, WINDOW_MS } from '../../src/contract/limits.ts';
import type { Company } from '../../src/sandbox/types.ts';
import type { PlainPage } from './bare-store.ts';
import { percentile, type Row, table } from './report.ts';
import type { Bench } from './run.ts';
import { askedNumber, openStage } from './stage.ts';

/** Windows and intervals are shortened so many times. The table is in the service's time. */
const TIMES = 10;
const MINUTE_MS = WINDOW_MS / TIMES;
const REAL_MINUTES = 18;
const CHANGES_A_MINUTE = 60;
const CHANGES_PER_DELETION = 10;
/** Where deletions are held, so much of the list is deleted at once, after so much of the load. */
const HELD = { share: 0.55, after: 1 / 3 };
/** Full runs after the load; they are overdue after so many intervals and an hour. */
const LAST_RUNS = 2;
const OVERDUE_INTERVALS = 4;

const USUAL = {
  conversations: 100_000,
  order: 'activity' as 'activity' | 'created',
  /** Between full runs. */
  everyMinutes: 60,
  checkSeconds: 60,
  limit: PARTNER_LIMIT,
  isHeld: false,
};
type Condition = typeof USUAL;
/** The app's pause between full runs of a large list, ten times its requests ÷ limit, would not be shortened. */
const RARE_MINUTES = (10 * USUAL.conversations) / 100 / PARTNER_LIMIT;
const CONDITIONS: Readonly<Record<string, Condition>> = {
  'by-activity': { ...USUAL, everyMinutes: RARE_MINUTES },
  'no-checks': { ...USUAL, checkSeconds: 0 },
  'by-creation': { ...USUAL, order: 'created', everyMinutes: 15 },
  '20-pages': { ...USUAL, conversations: 2_000 },
  held: { ...USUAL, conversations: 2_000, isHeld: true },
  'limit-5': { ...USUAL, conversations: 2_000, limit: 5 },
};

/** What was told of a record. Times are milliseconds since 1970. */
type Told = { at: number; id: string; isDeleted: boolean; revision: number };

/**
 * How soon a handler hears of changes and deletions. `freshness:3,held` loads one condition for three minutes in place of
 * 18, with shorter pauses between full runs. Constants of the app are not shortened, and count ten times here: a sweep a
 * second, news of an open run every five, and a minute at most in which a check or questions wait for permits.
 */
export const freshness: Bench = async (write, rows) => {
  const realMinutes = askedNumber(rows, REAL_MINUTES);
  const asked = Object.entries(CONDITIONS).filter(([name]) => rows.includes(name));
  const tracks: Track[] = [];
  for (const [title, condition] of asked.length > 0 ? asked : Object.entries(CONDITIONS)) {
    const everyMs = condition.everyMinutes * MINUTE_MS * Math.min(1, realMinutes / REAL_MINUTES);
    tracks.push(await openTrack(title, condition, everyMs));
  }
  const loadMs = realMinutes * 60_000;
  const loadEnd = Date.now() + loadMs;
  await Promise.all([load(tracks, loadMs), ...tracks.map(({ read }) => read(loadEnd))]);
  const lines: Row[] = [];
  for (const track of tracks) lines.push(await judge(track, loadEnd));
  write(`${loadMs / MINUTE_MS} minutes of the service in ${realMinutes}; SQLite, without the search index
${CHANGES_A_MINUTE} changes and ${CHANGES_A_MINUTE / CHANGES_PER_DELETION} deletions a minute, then ${LAST_RUNS} full runs.
Delays in seconds: median · 95 % · 99 % · worst. Checks: of the limit, in minutes without a full run.
Goals: median 40 s, 95 % in 75 s (first copy: 90 s), 4 % of the limit, nothing wrong, nothing lost.

${table(lines)}

`);
  for (const { stage } of tracks) await stage[Symbol.asyncDispose]();
};

/** @throws Error if the bench cannot measure what it says */
async function load(tracks: readonly Track[], loadMs: number): Promise<void> {
  const startedAt = Date.now();
  const ticks = Math.floor((loadMs / MINUTE_MS) * CHANGES_A_MINUTE);
  for (let tick = 0; tick < ticks; tick++) {
    await sleep(Math.max(0, startedAt + (tick * loadMs) / ticks - Date.now()));
    for (const { condition, change, remove } of tracks) {
      change();
      if (tick % CHANGES_PER_DELETION === 0) remove(1, 1);
      if (condition.isHeld && tick === Math.floor(ticks * HELD.after))
        remove(condition.conversations * HELD.share, 0);
    }
  }
  if (Date.now() > startedAt + loadMs + MINUTE_MS) throw new Error('This machine is too slow for the load.');
  for (const { title, runs } of tracks)
    if ((await runs()).length === 0) throw new Error(`${title}: the first copy did not come to its end.`);
}

type Track = Awaited<ReturnType<typeof openTrack>>;

/** A company, its load, and the app that reads its lists. */
async function openTrack(title: string, condition: Condition, everyMs: number) {
  const { conversations, order, checkSeconds, limit, isHeld } = condition;
  const through = limit < PARTNER_LIMIT ? limiter(limit) : undefined;
  const stage = await openStage({ windowMs: MINUTE_MS, through });
  const { app, db, dir, sandbox } = stage;
  const company = stage.addCompany({ conversations, contacts: 0, order });
  const live = await readIds(sandbox.apiUrl, company);
  const made = new Map<string, { revision: number; at: number }[]>();
  const deletedAt = new Map<string, number>();
  const any = () => Math.floor(Math.random() * live.length);

  const file = join(dir, 'told');
  const instance_id = await stage.install(company);
  // The app's own action takes whole minutes.
  const list = { instance_id, resource: 'conversations', interval_minutes: everyMs / 60_000 };
  await db.insertInto('lists').values(list).execute();
  await stage.startPlainWorker(join(import.meta.dirname, 'report-changes.ts'), {
    BENCH_REPORT: file,
    CHECK_INTERVAL_SECONDS: String(checkSeconds / TIMES),
  });
  /** Full runs that have ended, of those that began since a moment. */
  const runs = (since = 0) => {
    const all = db.selectFrom('runs').innerJoin('lists', 'lists.id', 'runs.list').orderBy('runs.id');
    const full = all.where('resource', '=', 'conversations').where('kind', '=', 'full');
    const ended = full.where('state', '=', 'finished').where('started_at', '>=', since);
    return ended.select(['started_at as from', 'finished_at as to']).$narrowType<{ to: number }>().execute();
  };
  return {
    ...{ title, condition, stage, live, made, deletedAt, runs },

    told(): Told[] {
      const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
      return lines.map((line) => JSON.parse(line));
    },

    change() {
      const id = live[any()] ?? '';
      sandbox.changeRecords(company.id, { resource: 'conversations', change: [id] });
      const before = made.get(id) ?? [];
      const revision = (before.at(-1)?.revision ?? 0) + 1;
      made.set(id, [...before, { revision, at: Date.now() }]);
    },

    remove(count: number, create: number) {
      const gone = Array.from({ length: count }, () => live.splice(any(), 1)).flat();
      const changes = { resource: 'conversations', delete: gone, create } as const;
      const { created } = sandbox.changeRecords(company.id, changes);
      for (const id of gone) deletedAt.set(id, Date.now());
      for (const id of created) made.set(id, [{ revision: 0, at: Date.now() }]);
      live.push(...created);
    },

    /** Starts the first copy. Resolves when the last full runs have ended, or are overdue. */
    async read(loadEnd: number) {
      await app.control.syncNow(instance_id);
      await sleep(loadEnd - Date.now());
      const overdueAt = loadEnd + OVERDUE_INTERVALS * everyMs + 60 * MINUTE_MS;
      while (Date.now() < overdueAt && (await runs(loadEnd)).length < LAST_RUNS) {
        // The worker may keep the database locked.
        if (isHeld) await app.control.confirmDeletions(instance_id).catch(() => undefined);
        await sleep(1_000);
      }
      // The handler still gets what the last run has found.
      await sleep(2 * MINUTE_MS);
    },
  };
}

/** The ids of all conversations. */
async function readIds(apiUrl: string, { api_tokens }: Company): Promise<string[]> {
  const ids: string[] = [];
  const headers = { authorization: `Bearer ${api_tokens[0]?.token}` };
  for (let url: string | null = `${apiUrl}/conversations?limit=100`; url !== null; ) {
    const { _results, _pagination } = (await (await fetch(url, { headers })).json()) as PlainPage;
    ids.push(..._results.map(({ id }) => id));
    url = _pagination.next;
  }
  return ids;
}

/** A proxy before a sandbox that lets so many requests of a window through. */
const limiter = (limit: number) => async (apiUrl: string, stack: AsyncDisposableStack) => {
  let [reset, left] = [0, 0];
  const server = createServer(async ({ url = '', headers: { authorization = '' } }, response) => {
    if (Date.now() >= reset) [reset, left] = [Date.now() + MINUTE_MS, limit];
    const isOver = left === 0;
    if (!isOver) left--;
    response.setHeader('x-ratelimit-limit', limit).setHeader('x-ratelimit-remaining', left);
    response.setHeader('x-ratelimit-reset', reset / 1_000);
    if (isOver) return response.writeHead(429).end();
    const answer = await fetch(new URL(url, apiUrl), { headers: { authorization } });
    const text = (await answer.text()).replaceAll(new URL(apiUrl).origin, origin);
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  stack.defer(() => server.close().closeAllConnections());
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return origin + new URL(apiUrl).pathname;
};

async function judge(track: Track, loadEnd: number): Promise<Row> {
  const { title, condition, stage, live, made, deletedAt } = track;
  const runs = await track.runs();
  const copiedAt = runs[0]?.to ?? loadEnd;
  const alive = new Set<string>();
  const reached = new Map<string, number>();
  const [delays, inFirst, ofDeletions]: [number[], number[], number[]] = [[], [], []];
  let wrong = 0;
  for (const { at, id, isDeleted, revision } of track.told()) {
    if (isDeleted) {
      const goneAt = deletedAt.get(id) ?? Number.POSITIVE_INFINITY;
      if (goneAt > at) wrong++;
      else if (alive.has(id)) ofDeletions.push(at - goneAt);
      alive.delete(id);
      continue;
    }
    alive.add(id);
    const before = reached.get(id) ?? -1;
    const isNew = (one: { revision: number }) => one.revision > before && one.revision <= revision;
    for (const one of made.get(id)?.filter(isNew) ?? [])
      (one.at < copiedAt ? inFirst : delays).push(at - one.at);
    reached.set(id, Math.max(before, revision));
  }
  const isTold = (id: string) => alive.has(id) && reached.get(id) === (made.get(id)?.at(-1)?.revision ?? 0);

  const quiet: number[] = [];
  for (let from = copiedAt; from + MINUTE_MS <= loadEnd; from += MINUTE_MS)
    if (runs.every((run) => run.to < from || run.from > from + MINUTE_MS)) quiet.push(from);
  const isQuiet = (at: number) => quiet.some((from) => from <= at && at < from + MINUTE_MS);
  const sent = stage.sandbox.requests().filter(({ at, path }) => !path.startsWith('/oauth') && isQuiet(at));
  const share = (100 * sent.length) / quiet.length / condition.limit;
  const seconds = (ms: number[]) => {
    if (ms.length === 0) return '–';
    const delayOf = (share: number) => Math.round((60 * percentile(ms, share)) / MINUTE_MS);
    return [0.5, 0.95, 0.99, 1].map(delayOf).join(' · ');
  };
  return {
    condition: title,
    'delay, s': seconds(delays),
    'in the first copy': seconds(inFirst),
    'of deletions': seconds(ofDeletions),
    'checks, %': quiet.length === 0 ? '–' : share.toFixed(1),
    'wrong deleted': wrong,
    'changes lost': live.filter((id) => !isTold(id)).length,
    'deletions lost': [...deletedAt.keys()].filter((id) => alive.has(id)).length,
    'full runs': runs.length,
    'after the load': (await track.runs(loadEnd)).length,
  };
}
