import type { Document } from './collection.ts';

/** How long a report or an export takes, in milliseconds on the service's clock. */
const ANALYTICS_RUN_MS = 5_000;

/** A report or an export, as it is kept: what was asked, and when. Everything else follows from the clock. */
export type AnalyticsJob = Document & {
  readonly start: number;
  readonly end: number;
  readonly timezone: string;
  readonly filters: AnalyticsFilters;
  readonly created_at: number;
};

/** Which records count; all of them where nothing is named. */
export interface AnalyticsFilters {
  readonly [name: string]: unknown;
  readonly inbox_ids?: readonly string[] | undefined;
  readonly tag_ids?: readonly string[] | undefined;
  readonly teammate_ids?: readonly string[] | undefined;
}

/** How far a job is at a moment, in ms since 1970; progress in percent. */
export function standOf({ created_at }: AnalyticsJob, now: number) {
  const elapsed = now - Math.round(created_at * 1000);
  const progress = Math.floor((100 * elapsed) / ANALYTICS_RUN_MS);
  const isDone = progress >= 100;
  return {
    status: isDone ? 'done' : 'running',
    progress: Math.min(100, Math.max(0, progress)),
  } as const;
}
