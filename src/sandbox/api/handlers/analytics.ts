import type { analyticsRoutes } from '../../../contract/api/analytics.ts';
import { filenameOf } from '../../data/analytics-exports.ts';
import { standOf } from '../../data/analytics-job.ts';
import { METRICS_DEFAULT } from '../../data/analytics-reports.ts';
import { conversationsCsv } from '../../data/conversations-csv.ts';
import { Problem } from '../../http/answer.ts';
import { listPage } from '../list.ts';
import { type ApiRequest, type Handlers, own, Ready, reach, seconds, show } from '../request.ts';

const DEFAULT_RANGE_S = 30 * 86_400;

/** What both kinds of jobs keep of a request. Throws a `Problem` (422) when the time ends before it begins. */
function job({ body, now }: ApiRequest<'createReport'> | ApiRequest<'createExport'>) {
  const end = body.end ?? seconds(now);
  const start = body.start ?? Math.max(0, end - DEFAULT_RANGE_S);
  if (start >= end) throw new Problem(422, 'start: must be before end.');
  const { timezone = 'UTC', filters = {} } = body;
  return { ...own(body), start, end, timezone, filters, created_at: seconds(now) };
}

function createReport(request: ApiRequest<'createReport'>) {
  const { analytics_reports: reports } = request.tables;
  const { metrics = METRICS_DEFAULT } = request.body;
  const report = { ...job(request), metrics };
  return show(
    request,
    reports,
    reports.add((id) => ({ ...report, id })),
  );
}

function createExport(request: ApiRequest<'createExport'>) {
  const { analytics_exports: exports, conversations } = request.tables;
  const asked = job(request);
  const { type = 'conversations' } = request.body;
  const csv = conversationsCsv(conversations, asked);
  return show(
    request,
    exports,
    exports.add((id) => ({ ...asked, id, type, csv })),
  );
}

function getExportFile(request: ApiRequest<'getExportFile'>) {
  const { analytics_exports: exports } = request.tables;
  const found = reach(request, exports, request.params.export_id);
  if (standOf(found, request.now).status !== 'done') {
    throw new Problem(404, `${found.id} is not done: there is no file yet.`);
  }
  return new Ready({
    status: 200,
    headers: {
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="${filenameOf(found)}"`,
    },
    body: found.csv,
  });
}

export const analyticsHandlers: Handlers<keyof typeof analyticsRoutes> = {
  listReports: (request) => listPage(request, request.tables.analytics_reports),
  createReport,
  getReport: (request) => {
    const { analytics_reports: reports } = request.tables;
    return show(request, reports, reach(request, reports, request.params.report_id));
  },
  listExports: (request) => listPage(request, request.tables.analytics_exports),
  createExport,
  getExport: (request) => {
    const { analytics_exports: exports } = request.tables;
    return show(request, exports, reach(request, exports, request.params.export_id));
  },
  getExportFile,
};
