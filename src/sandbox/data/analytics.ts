import type { Collection } from './collection.ts';
import type { Conversation } from './conversations.ts';
import { hashText, Random } from './random.ts';
import type { Document, Kind, Stored } from './record.ts';

/** How long a report or an export takes, in milliseconds on the service's clock. */
const ANALYTICS_RUN_MS = 5_000;
const DAY_S = 86_400;
const DURATION_MAX_S = 4 * 3_600;
/** As many conversations, the newest, are looked at for one file: it is made while someone waits. */
const LOOKED_AT_MAX = 10_000;

/** A report or an export, as it is kept: what was asked, and when. Everything else follows from the clock. */
type AnalyticsJob = Document &
  Pick<Stored<'getReport'>, 'start' | 'end' | 'timezone' | 'filters' | 'created_at'>;

/** An analytics report. */
type AnalyticsReport = AnalyticsJob & { readonly metrics: readonly string[] };

/** An analytics export, with the file's text as the data was when the export was asked for. */
type AnalyticsExport = AnalyticsJob & { readonly type: string; readonly csv: string };

/** What a report is about when nothing is named. */
export const METRICS_DEFAULT = `conversations_opened conversations_archived messages_received messages_sent
  first_response_time resolution_time`.split(/\s+/);

/** How far a job is at a moment, in ms since 1970; progress in percent. */
export function standOf({ created_at }: AnalyticsJob, now: number) {
  const elapsed = now - Math.round(created_at * 1000);
  const progress = Math.floor((100 * elapsed) / ANALYTICS_RUN_MS);
  const status: 'done' | 'running' = progress >= 100 ? 'done' : 'running';
  return { status, progress: Math.min(100, Math.max(0, progress)) };
}

/** The metric's value: made up, but always the same for the same company, time and filters. */
function metric({ id: reportId, start, end, filters }: AnalyticsReport, id: string) {
  const [company] = /(?<=_).{5}/.exec(reportId) ?? [];
  const random = new Random(hashText(JSON.stringify([company, id, start, end, filters])));
  if (id.endsWith('_time')) return { id, type: 'duration', value: 60 + random.int(DURATION_MAX_S) };
  const aDay = 1 + random.int(60);
  return { id, type: 'number', value: Math.ceil((aDay * (end - start)) / DAY_S) };
}

/** The analytics reports of a company; without values until they are done. */
export const reportKind: Kind<AnalyticsReport> = {
  prefix: 'rpt',
  present(report, baseUrl, { now }) {
    const stand = standOf(report, now);
    const metrics = report.metrics.map((name) => metric(report, name));
    return {
      _links: { self: `${baseUrl}/analytics/reports/${report.id}` },
      ...report,
      ...stand,
      metrics: stand.status === 'done' ? metrics : metrics.map((one) => ({ ...one, value: null })),
    };
  },
};

/** What an export's file is called. */
export function filenameOf({ id }: AnalyticsExport): string {
  return `conversations-${id}.csv`;
}

/** Analytics exports; without a file until they are done. */
export const exportKind: Kind<AnalyticsExport> = {
  prefix: 'exp',
  present(document, baseUrl, { now }) {
    const { csv, ...asked } = document;
    const self = `${baseUrl}/analytics/exports/${asked.id}`;
    const stand = standOf(document, now);
    const isDone = stand.status === 'done';
    const file = isDone ? { url: `${self}/file`, size: Buffer.byteLength(csv) } : { url: null, size: null };
    return { _links: { self }, ...asked, ...stand, filename: filenameOf(document), ...file };
  },
};

function meets({ inbox, tags, assignee }: Conversation, filters: AnalyticsJob['filters']): boolean {
  const { inbox_ids, tag_ids, teammate_ids } = filters;
  return (
    inbox_ids?.includes(inbox.id) !== false &&
    (tag_ids === undefined || tags.some(({ id }) => tag_ids.includes(id))) &&
    (teammate_ids === undefined || (assignee !== null && teammate_ids.includes(assignee.id)))
  );
}

/** A field as RFC 4180 has it. */
function field(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const HEAD = 'conversation_id,created_at,updated_at,status,inbox_id,assignee_id,subject';

function row({ id, created_at, updated_at, status, inbox, assignee, subject }: Conversation): string {
  return [id, created_at, updated_at, status, inbox.id, assignee?.id ?? '', subject].map(field).join(',');
}

/** The shared conversations that began in a time, as CSV with a head (RFC 4180); times in seconds since 1970. */
export function conversationsCsv(
  conversations: Collection<Conversation>,
  { start, end, filters }: Pick<AnalyticsJob, 'start' | 'end' | 'filters'>,
): string {
  const rows = conversations
    .all(LOOKED_AT_MAX)
    .filter(({ is_private, created_at }) => !is_private && created_at >= start && created_at < end)
    .filter((conversation) => meets(conversation, filters))
    .map(row);
  return [HEAD, ...rows].map((line) => `${line}\r\n`).join('');
}
