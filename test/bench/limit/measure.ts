import { type Condition, TIMED_PAGES } from './conditions.ts';
import type { Contender, Track } from './contender.ts';
import {
  type Counted,
  idealPages,
  idealTimeMs,
  requestsOf,
  type Span,
  timeOfPage,
  windowsOf,
  within,
} from './journal-counts.ts';

/** What windows are opened with; pages are something else. */
const OPENER = '/me';

/** Everything that a row of the bench has brought. */
export interface Taken {
  condition: Condition;
  contenders: readonly Contender[];
  /** The journal from the opening of the windows on. */
  rows: Counted[];
  /** Of each contender. */
  cpuMs: readonly number[];
  /** On the service's clock, ms since 1970. */
  startedAt: number;
  loop: { companyId: string; perSecondAlone: number; isBeside: boolean };
  /** The other application, which shares every company's limit. */
  othersId: string;
  windowMs: number;
  windows: number;
  limit: number;
}

/** What one contender did with one company; times in ms since the start of the work. */
export interface Line {
  name: string;
  label: string;
  isOurs: boolean;
  openForMs: number;
  /** Of what limit and latency permit in the complete windows. */
  share: number;
  refused: number;
  refusedPerWindow: number;
  /** Of the condition's timed pages; undefined when it did not get so far. */
  timedMs: number | undefined;
  idealTimedMs: number;
  pages: number;
  /** What the other application was served and refused, per window. */
  othersPerWindow: { served: number; refused: number };
  cpuMsPerPage: number;
  /** Every request: when it arrived, and its status. */
  requests: [at: number, status: number][];
  /** When the windows of the service opened. */
  windowStarts: number[];
}

/** A row of the bench. */
export interface Measured {
  condition: Condition;
  windowMs: number;
  windows: number;
  limit: number;
  loopPerSecond: number;
  lines: Line[];
}

/** Reads from the journal alone what everybody got. */
export function measureAll(taken: Taken): Measured {
  const { condition, contenders, windowMs, windows, limit } = taken;
  const loopPerSecond = paceOf(taken);
  const lines = contenders.flatMap((contender, at) => {
    const own = contender.tracks.map((track) => measureTrack(taken, contender, track, loopPerSecond));
    const pages = own.reduce((sum, line) => sum + line.pages, 0);
    return own.map((line) => ({ ...line, cpuMsPerPage: (taken.cpuMs[at] ?? 0) / pages }));
  });
  return { condition, windowMs, windows, limit, loopPerSecond, lines };
}

function paceOf({ loop, rows, startedAt, windowMs, windows }: Taken): number {
  if (!loop.isBeside) return loop.perSecondAlone;
  const lengthMs = windowMs * windows;
  return (loopPages(rows, loop.companyId, { from: startedAt, to: startedAt + lengthMs }) * 1_000) / lengthMs;
}

function guardPerSecond({ guard }: Condition): number {
  return guard === undefined ? Number.POSITIVE_INFINITY : (guard.requests * 1_000) / guard.perMs;
}

function loopPages(rows: readonly Counted[], companyId: string, span: Span): number {
  return within(requestsOf(rows, companyId), span).filter(({ status }) => status === 200).length;
}

function measureTrack(
  taken: Taken,
  { name, label, isOurs }: Contender,
  { company, openForMs }: Track,
  loopPerSecond: number,
): Line {
  const { condition, windowMs, windows, limit, startedAt, loop } = taken;
  const all = requestsOf(taken.rows, company.id);
  const own = all.filter(({ application, path }) => application !== taken.othersId && path !== OPENER);
  const openedAt = all[0]?.at ?? startedAt;
  // The first window was open when the work began.
  const from = openedAt + windowMs;
  const span = { from, to: from + windowMs * windows };
  const served = within(own, span).filter(({ status }) => status === 200).length;
  const ofOthers = within(all, span).filter(({ application }) => application === taken.othersId);
  const others = ofOthers.filter(({ status }) => status === 200).length;
  const loopInSpan = loop.isBeside
    ? loopPages(taken.rows, loop.companyId, span)
    : (loopPerSecond * windowMs * windows) / 1_000;
  const refused = own.filter(({ at, status }) => status === 429 && at < span.to).length;
  const share = condition.othersShare ?? 0;
  const left = limit * (1 - share);
  return {
    name,
    label,
    isOurs,
    openForMs,
    share: served / idealPages({ limit, windows, others, loopPages: loopInSpan }),
    refused,
    refusedPerWindow: refused / ((span.to - startedAt) / windowMs),
    timedMs: timeOfPage(own, condition.timedPages ?? TIMED_PAGES, startedAt),
    idealTimedMs: idealTimeMs(condition.timedPages ?? TIMED_PAGES, {
      limit: left,
      firstLeft: left - 1,
      firstEndsInMs: openedAt + windowMs - startedAt,
      windowMs,
      perSecond: Math.min(loopPerSecond, guardPerSecond(condition)),
    }),
    pages: own.filter(({ status }) => status === 200).length,
    othersPerWindow: { served: others / windows, refused: (ofOthers.length - others) / windows },
    cpuMsPerPage: 0,
    requests: own.map(({ at, status }) => [at - startedAt, status]),
    windowStarts: windowsOf(all, windowMs).map(({ start }) => start - startedAt),
  };
}
