import { setTimeout as sleep } from 'node:timers/promises';
import { PARTNER_LIMIT } from '../../../src/contract/limits.ts';
import type { PeerOrder } from '../peers/peer.ts';
import { openStage } from '../support/bench-app.ts';
import type { BenchSandbox } from '../support/bench-sandbox.ts';
import { Child } from '../support/child.ts';
import type { Condition } from './conditions.ts';
import type { Contender, Track } from './contender.ts';
import { Killer } from './killer.ts';
import { type Measured, measureAll, type Taken } from './measure.ts';
import { OtherApplication } from './other-application.ts';
import { OurContender } from './our-contender.ts';
import { listsAt, PEER_KINDS, PeerContender } from './peer-contender.ts';

export const WINDOW_MS = 6_000;
export const WINDOWS = 5;

/** For such a part of a window it has been open when the work begins: ours at three phases, peers at the middle one. */
const PHASES = [0, 1 / 3, 2 / 3];
const PEER_PHASE = 1 / 3;

/** More pages than anybody gets in a row. */
const RECORDS = 1_000_000;
/** The most that there is: the bare loop has no limit. */
const NO_LIMIT_RPM = 100_000;
/** How long the bare loop runs alone, and from when on it is counted: then it is warm. */
const LOOP_MS = 3_000;
const LOOP_WARM_MS = 1_000;
/** With slower answers the bare loop goes on beside the contenders: then it says what latency permits, to the page. */
const LOOP_BESIDE_FROM_MS = 100;
/** The burst is spent a window and this time ago, so that the next window is untouched. */
const SPENT_BEFORE_MS = 2_000;
const WATCH_EVERY_MS = 150;
const AFTER_MS = 500;

/** One row of the bench: all contenders at the same time, on one sandbox, each with companies of its own. */
export async function runCondition(condition: Condition): Promise<Measured> {
  await using stack = new AsyncDisposableStack();
  const { latencyMs, workers = 1, clockAheadMs = 0, windowMs = WINDOW_MS, windows = WINDOWS } = condition;
  const { dir, redisUrl, sandbox, bench } = await openStage(stack, { kind: 'sqlite', windowMs, latencyMs });
  const other = await OtherApplication.register(sandbox);
  stack.defer(() => other.end());

  const newTrack = async (openForMs: number): Promise<Track> => {
    const company = await sandbox.addCompany({ contacts: RECORDS, conversations: RECORDS });
    await other.install(company);
    return { company, grant: await sandbox.authorize(company), openForMs };
  };
  const ours = await Promise.all(PHASES.map((phase) => newTrack(phase * windowMs)));
  const { apiUrl } = sandbox.up;
  const setting = {
    apiUrl,
    redisUrl,
    dir,
    limit: PARTNER_LIMIT,
    windowMs,
    workers,
  };
  const contenders: Contender[] = [new OurContender(bench, ours, workers)];
  for (const kind of PEER_KINDS)
    contenders.push(new PeerContender(kind, await newTrack(PEER_PHASE * windowMs), setting));
  stack.defer(async () => {
    await Promise.all(contenders.map((contender) => contender.end()));
  });
  await Promise.all(contenders.map((contender) => contender.prepare()));

  const loop = await startBareLoop(sandbox, redisUrl, dir);
  stack.defer(() => loop.child.kill());
  loop.child.send({ go: true });
  await sleep(LOOP_MS);
  const alone = await loopPace(sandbox, loop.companyId);
  const isBeside = latencyMs >= LOOP_BESIDE_FROM_MS;
  if (!isBeside) await loop.child.kill();

  const tracks = contenders.flatMap((contender) => contender.tracks);
  await spendBursts(sandbox, other, tracks, clockAheadMs - windowMs - SPENT_BEFORE_MS);
  const aheadMs = await sandbox.setClock(clockAheadMs);
  const { guard, othersShare = 0 } = condition;
  if (guard !== undefined) {
    const paths = ['/contacts', '/conversations'];
    await sandbox.post('guards', { tier: 'lists', requests: guard.requests, per_ms: guard.perMs, paths });
  }
  const before = (await sandbox.requests()).at(-1)?.n ?? 0;
  await openWindows(other, contenders, windowMs);
  if (othersShare > 0) other.sendEvery(windowMs / (PARTNER_LIMIT * othersShare));

  const startedAt = Date.now() + aheadMs;
  await Promise.all(contenders.map((contender) => contender.go()));
  const rows: Taken['rows'] = [];
  const killer = condition.kill ? new Killer(contenders, windowMs, PARTNER_LIMIT) : undefined;
  const endsAt = startedAt + windowMs * (windows + 1) + AFTER_MS;
  for (let last = before; Date.now() + aheadMs < endsAt; ) {
    await sleep(WATCH_EVERY_MS);
    const newest = await sandbox.requests(last);
    rows.push(...newest);
    last = newest.at(-1)?.n ?? last;
    killer?.look(rows);
  }
  await killer?.done();
  const cpuMs = contenders.map((contender) => contender.cpuMs());
  return measureAll({
    condition,
    contenders,
    rows,
    cpuMs,
    startedAt,
    loop: { companyId: loop.companyId, perSecondAlone: alone, isBeside },
    othersId: other.clientId,
    windowMs,
    windows,
    limit: PARTNER_LIMIT,
  });
}

/** Two cursors without any limit, through a company that has none. */
async function startBareLoop(sandbox: BenchSandbox, redisUrl: string, dir: string) {
  const company = await sandbox.addCompany({
    contacts: RECORDS,
    conversations: RECORDS,
    addon_rpm: NO_LIMIT_RPM,
  });
  const order: PeerOrder = {
    peer: 'plain-loop',
    lists: listsAt(sandbox.up.apiUrl),
    token: company.api_tokens[0]?.token ?? '',
    redisUrl,
    dir,
    prefix: 'bare-loop',
    limit: NO_LIMIT_RPM,
    windowMs: WINDOW_MS,
    resume: false,
  };
  const child = new Child('peers/peer-process.ts', [], order);
  await child.said();
  return { child, companyId: company.id };
}

/** Pages a second, by the intervals between requests once it is warm. */
async function loopPace(sandbox: BenchSandbox, companyId: string): Promise<number> {
  const times = (await sandbox.requests())
    .filter(({ company_id, status }) => company_id === companyId && status === 200)
    .map(({ at }) => at);
  const [first = 0] = times;
  const warm = times.filter((at) => at >= first + LOOP_WARM_MS);
  const [from = 0, to = 0] = [warm[0], warm.at(-1)];
  return ((warm.length - 1) * 1_000) / (to - from);
}

/**
 * Spends every company's burst allowance, once in ten windows, before the work begins: what is left is what the limit
 * permits in every window. It is done in the service's past, so that the window that this takes is over.
 */
async function spendBursts(
  sandbox: BenchSandbox,
  other: OtherApplication,
  tracks: readonly Track[],
  clockAheadMs: number,
): Promise<void> {
  await sandbox.setClock(clockAheadMs);
  const all = PARTNER_LIMIT * 1.5;
  await Promise.all(tracks.map(({ company }) => other.spend(company.id, all)));
}

/** Opens each company's window by one request, so long before it returns; it has been answered by then. */
async function openWindows(
  other: OtherApplication,
  contenders: readonly Contender[],
  windowMs: number,
): Promise<void> {
  const phases = PHASES.map((phase) => phase * windowMs).toReversed();
  for (const [at, openForMs] of phases.entries()) {
    const opened = contenders.flatMap((contender) =>
      contender.tracks
        .filter((track) => track.openForMs === openForMs)
        .map((track) => contender.open?.(track) ?? other.spend(track.company.id, 1)),
    );
    await Promise.all([...opened, sleep(openForMs - (phases[at + 1] ?? openForMs))]);
  }
}
