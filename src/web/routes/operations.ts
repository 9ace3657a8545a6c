import { existsSync, readFileSync } from 'node:fs';
import { type Request, type RequestHandler, Router } from 'express';
import { TROUBLES } from '../../store/troubles.ts';
import type { StatusQuery } from '../../sync/status.ts';
import { INSTANCES_PER_PAGE } from '../../sync/status-types.ts';
import { ACTIONS, actionRoutes, doneMessage, possibleActions } from '../actions.ts';
import { instanceAddress, pathValue } from '../own-instance.ts';
import type { Pages } from '../render.ts';
import { noStore } from '../security.ts';
import { formatNumber } from '../view/format.ts';
import { operatorsList, workerView } from '../view/operations-view.ts';
import { lastPage, pageLinks, readListQuery } from '../view/paging.ts';
import { runRow } from '../view/run-view.ts';
import { pauseLines, troubleLines, troubleTiles } from '../view/trouble-view.ts';
import type { WebDependencies } from '../web-dependencies.ts';
import { notFound } from '../web-error.ts';

/** Paths that a program may read with the operator's password. */
const PROGRAM_PATHS = [
  '/instances/:id/status',
  '/instances/:id/:resource.ndjson',
  '/instances/:id/changes/:resource.ndjson',
];

const FILTERS = {
  attention: 'Needs attention',
  active: 'Active',
  paused: 'Paused',
  needs_reauthorization: 'Needs authorization',
  disconnected: 'Disconnected',
} as const;

/** What to do about each trouble: a heading each. */
const HANDBOOK = new URL('../../../docs/operations.md', import.meta.url);

const ACTIONS_SHOWN = 20;

function countsText(counts: Partial<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([state, count]) => `${state.replaceAll('_', ' ')} ${formatNumber(count ?? 0)}`)
    .join(', ');
}

function filterOf({ query: { filter } }: Request): StatusQuery['filter'] {
  const known = [...Object.keys(FILTERS), ...TROUBLES];
  return known.includes(String(filter)) ? (filter as StatusQuery['filter']) : undefined;
}

/** The sections of the handbook by their anchors, as text. */
function readHandbook(): { anchor: string; title: string; text: string }[] {
  if (!existsSync(HANDBOOK)) return [];
  const [, ...sections] = readFileSync(HANDBOOK, 'utf8').split(/^###? /m);
  return sections.map((section) => {
    const [title = '', ...lines] = section.split('\n');
    const anchor = title
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .replaceAll(' ', '-');
    return { anchor, title, text: lines.join('\n').trim() };
  });
}

/** Lets a program read with the operator's password. A browser that sees the instance needs none. */
export function programAccess({ browsers }: WebDependencies, gate: RequestHandler): Router {
  return Router().get(PROGRAM_PATHS, async (req, res, next) => {
    if (req.get('authorization') === undefined) return next();
    const { browserId } = req.session;
    if (browserId !== undefined && (await browsers.sees(browserId, pathValue(req, 'id')))) return next();
    await gate(req, res, () => undefined);
    res.locals.isOperator = true;
    next();
  });
}

/** The operator's pages: every instance, and actions on it. */
export function operationsRoutes(deps: WebDependencies, gate: RequestHandler, pages: Pages): Router {
  const { renderPage, site, now } = pages;
  const router = Router();
  const { operations, actions } = deps;
  if (!operations) return router;
  router.use('/ops', noStore, gate);

  router.get('/ops', async (req, res) => {
    const { search, page } = readListQuery(req.query);
    const filter = filterOf(req);
    const { checks } = await deps.readiness();
    const overview = await operations.overview({ page, search, ...(filter === undefined ? {} : { filter }) });
    const { instances, states, lists, total, troubles } = overview;
    const pauses = await actions.pauses(instances.map(({ id }) => id));
    const tiles = troubleTiles(troubles, filter);
    const counts: Record<string, number | undefined> = {
      ...states,
      attention: overview.attention,
      paused: overview.paused,
    };
    const last = lastPage(total, INSTANCES_PER_PAGE);
    renderPage(res, 200, 'operations', {
      search,
      filter,
      filters: [
        ...Object.entries(FILTERS).map(([value, title]) => ({ value, title, count: counts[value] ?? 0 })),
        ...tiles.map(({ kind: value, title, count }) => ({ value, title, count })),
      ],
      tiles,
      total,
      listsText: countsText(lists),
      resources: site.resources,
      instances: instances.map((status) => ({
        ...status,
        address: `/ops${instanceAddress(status.id)}`,
        lines: [
          ...troubleLines(status.troubles, site.resources, now()),
          ...pauseLines(status, pauses, site.resources, now()),
        ],
        lists: site.resources.map(({ name, title }) => {
          const list = status.resources[name];
          return { title, list: list && operatorsList(list, status, now()) };
        }),
      })),
      pages: pageLinks('/ops', { search, filter, page: overview.page }, last),
      queues: overview.queues?.map(({ name, counts }) => ({ name, text: countsText(counts) })),
      workers: overview.workers?.map((worker) => workerView(worker, now())),
      failedChecks: Object.entries(checks).filter(([, outcome]) => outcome !== 'ok'),
      actions: await actions.list({ limit: ACTIONS_SHOWN }),
    });
  });

  const handbook = readHandbook();
  router.get('/ops/help', (_req, res) => {
    if (handbook.length === 0) throw notFound();
    renderPage(res, 200, 'operations-help', { handbook });
  });

  router.get('/ops/instances/:id', async (req, res) => {
    const status = await find(req);
    const troubles = await operations.troubles(status.id);
    const pauses = await actions.pauses([status.id]);
    const runs = await deps.status.readRuns(status.id);
    const address = `/ops${instanceAddress(status.id)}`;
    const formsOf = (resource?: string) =>
      possibleActions(status, resource, 'operator').map((name) => {
        const place = resource === undefined ? name : `${resource}/${name}`;
        return { name, ...ACTIONS[name], address: `${address}/${place}` };
      });
    renderPage(res, 200, 'operations-instance', {
      status,
      lines: [
        ...troubleLines(troubles, site.resources, now()),
        ...pauseLines(status, pauses, site.resources, now()),
      ],
      forms: formsOf(),
      lists: site.resources.flatMap((of) => {
        const { name, title } = of;
        const list = status.resources[name];
        if (list === undefined) return [];
        const shown = operatorsList(list, status, now());
        const rows = (runs[name] ?? []).map((run) => runRow(run, of, status));
        return [{ title, list: shown, problems: list.problems, rows, forms: formsOf(name) }];
      }),
      actions: await actions.list({ instanceId: status.id, limit: ACTIONS_SHOWN }),
      flash: doneMessage(req, status),
    });
  });

  const findFor = async (req: Request) => ({ status: await find(req), browserId: undefined });
  actionRoutes(router, '/ops', deps, findFor, async (req) => {
    if ((await deps.instances.find(pathValue(req, 'id'))) === undefined) throw notFound();
  });
  return router;

  async function find(req: Request) {
    const status = await deps.status.read(pathValue(req, 'id'));
    if (!status) throw notFound();
    return status;
  }
}
