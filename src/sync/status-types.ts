import type { DayTable } from '../store/schema.ts';
import type { TroubleRow } from '../store/troubles.ts';
import type { handlerStatus, listJson, runJson, StatusReader, writeJson } from './status.ts';

/** Instances on one page of the operator. */
export const INSTANCES_PER_PAGE = 50;

/** On that page, changes of a list that wait for the handler are counted up to here. */
export const MOST_PENDING_ON_PAGE = 1_000;

/** Problems of each kind in the status, and on the page of problems. */
export const PROBLEMS_IN_STATUS = 5;
export const PROBLEMS_ON_PAGE = 100;

export interface ListStatusJson extends ReturnType<typeof listJson> {
  /** Null without a handler. */
  handler: ReturnType<typeof handlerStatus> | null;
  problems: ListProblems;
}

/** Rejected records and dead letters of a list: their numbers, and the first of them. */
export interface ListProblems {
  rejected: number;
  rejected_records: { reason: string; excerpt: string; length: number; at: string }[];
  dead_letters: { id: string; error: string; at: string }[];
}

export type WriteJson = ReturnType<typeof writeJson>;

/** One full run of a list, or one check that changed something. Dates are ISO 8601 in UTC. */
export type RunJson = ReturnType<typeof runJson>;

/** The sums of a list on a day. The first copy is counted by itself. */
export interface DayJson extends Omit<DayTable, 'list' | 'day'> {
  /** In UTC: `2025-06-10`. */
  day: string;
}

/** What is wrong with an instance or a list of it. */
export interface TroubleJson extends Pick<TroubleRow, 'kind' | 'resource' | 'count' | 'detail'> {
  since: string | null;
}

/** The facts of the dashboard, as `GET /instances/:id/status` answers them. */
export type InstanceStatus = NonNullable<Awaited<ReturnType<StatusReader['read']>>>;

/** One page of the operator's, an instance on it, and a list of that: its problems are counted. */
export type StatusPage = Awaited<ReturnType<StatusReader['readPage']>>;
export type InstanceOverview = StatusPage['instances'][number];
export type ListOverview = InstanceOverview['resources'][string];
