import type { JournalRow } from '../../../src/sandbox/types.ts';

/** A row of the sandbox's journal, as far as it counts here. */
export type Counted = Pick<JournalRow, 'at' | 'path' | 'status' | 'company_id' | 'application'>;

/** Windows are opened by this route; the pages of a contender come from others. */
const OPENER = '/me';

/** The complete windows that count; times in milliseconds since 1970 on the clock of the service. */
export interface Setting {
  windowMs: number;
  windows: number;
  /** Requests that a window allows. */
  limit: number;
  /** Pages a second that the bare loop gets without a limit. */
  loopPerSecond: number;
  /** The client id of the application that shares the limit of every company. */
  othersId: string;
}

/** What a contender got from one company. */
export interface Line {
  /** Of what limit and latency permit in the complete windows. */
  share: number;
  /** 429s until the end of these windows. */
  refused: number;
  pages: number;
  /** What the other application was served and refused in these windows. */
  others: { served: number; refused: number };
}

/**
 * Reads from the journal what a contender got. The window that is open when the work begins does not count.
 *
 * @param rows the journal of all companies since the windows were opened, oldest first
 */
export function measureTrack(rows: readonly Counted[], companyId: string, setting: Setting): Line {
  const { windowMs, windows, limit, loopPerSecond, othersId } = setting;
  const all = rows.filter(({ company_id, path }) => company_id === companyId && !path.startsWith('/oauth/'));
  const from = (all[0]?.at ?? 0) + windowMs;
  const to = from + windowMs * windows;
  const count = (status: number, isOthers: boolean, since = from) =>
    all.filter(
      (row) =>
        row.at >= since &&
        row.at < to &&
        row.status === status &&
        (row.application === othersId) === isOthers &&
        (isOthers || row.path !== OPENER),
    ).length;
  const pages = count(200, false);
  const others = { served: count(200, true), refused: count(429, true) };
  const permitted = Math.min(limit * windows - others.served, (loopPerSecond * windowMs * windows) / 1_000);
  return { share: pages / permitted, refused: count(429, false, 0), pages, others };
}
