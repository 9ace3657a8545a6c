import { type AnalyticsJob, standOf } from './analytics-job.ts';
import type { Collection, Owner } from './collection.ts';
import { few } from './few.ts';
import { hashText, Random } from './random.ts';

const DAY_S = 86_400;
const DURATION_MAX_S = 4 * 3_600;

/** What a report is about when nothing is named. */
export const METRICS_DEFAULT = [
  'conversations_opened',
  'conversations_archived',
  'messages_received',
  'messages_sent',
  'first_response_time',
  'resolution_time',
] as const;

/** An analytics report. */
export type AnalyticsReport = AnalyticsJob & { readonly metrics: readonly string[] };

/** The metric's value: made up, but always the same for the same company, time and filters. */
function metric(owner: Owner, { start, end, filters }: AnalyticsReport, name: string) {
  const random = new Random(hashText(JSON.stringify([owner.code, name, start, end, filters])));
  if (name.endsWith('_time')) {
    return { id: name, type: 'duration', value: 60 + random.int(DURATION_MAX_S) } as const;
  }
  const aDay = 1 + random.int(60);
  return { id: name, type: 'number', value: Math.ceil((aDay * (end - start)) / DAY_S) } as const;
}

/** The analytics reports of a company: none at start. */
export function analyticsReports(owner: Owner): Collection<AnalyticsReport> {
  return few<AnalyticsReport>(owner, {
    prefix: 'rpt',
    start: [],
    present: (report, baseUrl, { now }) => {
      const stand = standOf(report, now);
      const metrics = report.metrics.map((name) => metric(owner, report, name));
      return {
        _links: { self: `${baseUrl}/analytics/reports/${report.id}` },
        ...report,
        ...stand,
        metrics: stand.status === 'done' ? metrics : metrics.map((one) => ({ ...one, value: null })),
      };
    },
  });
}
