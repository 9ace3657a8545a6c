import { type AnalyticsJob, standOf } from './analytics-job.ts';
import type { Collection, Owner } from './collection.ts';
import { few } from './few.ts';

/** An analytics export. */
export type AnalyticsExport = AnalyticsJob & {
  readonly type: string;
  /** The file's text, as the data was when the export was asked for. */
  readonly csv: string;
};

/** What the file is called. */
export function filenameOf({ id }: AnalyticsExport): string {
  return `conversations-${id}.csv`;
}

/** The analytics exports of a company: none at start. */
export function analyticsExports(owner: Owner): Collection<AnalyticsExport> {
  return few<AnalyticsExport>(owner, {
    prefix: 'exp',
    start: [],
    present: (document, baseUrl, { now }) => {
      const { csv, ...asked } = document;
      const self = `${baseUrl}/analytics/exports/${asked.id}`;
      const stand = standOf(document, now);
      const isDone = stand.status === 'done';
      return {
        _links: { self },
        ...asked,
        ...stand,
        filename: filenameOf(document),
        url: isDone ? `${self}/file` : null,
        size: isDone ? Buffer.byteLength(csv) : null,
      };
    },
  });
}
