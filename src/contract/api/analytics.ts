import { z } from 'zod';
import { id, links, nonBlank, timestamp } from './common.ts';
import { defineRoutes, type RouteContract } from './route.ts';

function isTimeZone(name: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

const filters = z.looseObject({
  inbox_ids: z.array(id).optional(),
  tag_ids: z.array(id).optional(),
  teammate_ids: z.array(id).optional(),
});

/** A report and an export cover the time from `start` to before `end`: by default the last 30 days. */
const asked = {
  start: timestamp.optional(),
  end: timestamp.optional(),
  timezone: z.string().refine(isTimeZone, 'must be a time zone of the IANA database').optional(),
  filters: filters.optional(),
};

/** A report to make: its metrics and its time. A metric whose name ends in `_time` is a duration in seconds. */
const newReport = z.looseObject({ ...asked, metrics: z.array(nonBlank).min(1).max(100).optional() });

/** An export to make. Whatever its type, the sandbox's file has the conversations of its time. */
const newExport = z.looseObject({ ...asked, type: nonBlank.optional() });

const answered = {
  _links: links,
  id,
  status: z.enum(['running', 'done']),
  /** Percent. */
  progress: z.int().min(0).max(100),
  start: timestamp,
  end: timestamp,
  timezone: z.string(),
  filters,
  created_at: timestamp,
};

/** A report (the fields are our choice); the metrics have no value until it is done. */
export const report = z.looseObject({
  ...answered,
  metrics: z.array(
    z.looseObject({ id: z.string(), type: z.enum(['number', 'duration']), value: z.number().nullable() }),
  ),
});

/** An export (the fields are our choice); there is no file until it is done. */
const analyticsExport = z.looseObject({
  ...answered,
  type: z.string(),
  filename: z.string(),
  /** Opened with the same token. */
  url: z.url().nullable(),
  /** Bytes. */
  size: z.int().nonnegative().nullable(),
});

const global = { guard: 'analytics', by: [] } as const satisfies RouteContract['guard'];

export const analyticsRoutes = defineRoutes({
  listReports: {
    method: 'GET',
    path: '/analytics/reports',
    summary: 'Lists analytics reports',
    source: 'choice',
    list: true,
    answer: report,
  },
  createReport: {
    method: 'POST',
    path: '/analytics/reports',
    summary: 'Starts an analytics report, which becomes ready later',
    source: 'specified',
    body: newReport,
    status: 201,
    answer: report,
    guard: global,
  },
  getReport: {
    method: 'GET',
    path: '/analytics/reports/:report_id',
    summary: 'Fetches one analytics report, ready or not',
    source: 'choice',
    answer: report,
  },
  listExports: {
    method: 'GET',
    path: '/analytics/exports',
    summary: 'Lists analytics exports',
    source: 'choice',
    list: true,
    answer: analyticsExport,
  },
  createExport: {
    method: 'POST',
    path: '/analytics/exports',
    summary: 'Starts an analytics export, whose file becomes ready later',
    source: 'specified',
    body: newExport,
    status: 201,
    answer: analyticsExport,
    guard: global,
  },
  getExport: {
    method: 'GET',
    path: '/analytics/exports/:export_id',
    summary: 'Fetches one analytics export, ready or not',
    source: 'choice',
    answer: analyticsExport,
  },
  getExportFile: {
    method: 'GET',
    path: '/analytics/exports/:export_id/file',
    summary: 'Fetches the file of an analytics export that is done',
    source: 'choice',
    mediaType: 'text/csv',
    answer: z.string(),
  },
});
