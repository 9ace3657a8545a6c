import { createHash } from 'node:crypto';
import { type Request, type Response, Router } from 'express';
import type { InstanceStatus } from '../../sync/status-types.ts';
import { actionRoutes, doneMessage, type FieldError, possibleActions } from '../actions.ts';
import { startAddress } from '../install-error-pages.ts';
import { instanceAddress, ownCompany, ownInstance, pathValue, tabsOf } from '../own-instance.ts';
import type { Pages } from '../render.ts';
import { noStore } from '../security.ts';
import { chartView, pausedDays } from '../view/chart-view.ts';
import { budgetFacts, tokenFacts, tokenFailure } from '../view/facts-view.ts';
import { instanceMessage } from '../view/instance-message.ts';
import { companyFreshness, handlerView, listView } from '../view/list-view.ts';
import { outboxView } from '../view/outbox-view.ts';
import { problemSections } from '../view/problem-view.ts';
import { type NameOf, recordOf, recordView } from '../view/record-view.ts';
import { historyRows } from '../view/run-view.ts';
import type { WebDependencies } from '../web-dependencies.ts';

/** Actions among which the chart looks for pauses. */
const ACTIONS_READ = 500;

/** The entity tag of a status (RFC 9110, section 8.8.3), without the service's clock. */
function tagOf(status: InstanceStatus): string {
  const facts = JSON.stringify({ ...status, now: undefined });
  return `"${createHash('sha256').update(facts).digest('base64url')}"`;
}

/** The pages of one instance, the same facts as JSON, and its buttons. */
export function instanceRoutes(deps: WebDependencies, { renderPage, site, now }: Pages): Router {
  const router = Router();
  const { resources } = site;
  const { records } = deps;

  /** What the pages of an instance share. */
  async function frameOf(req: Request, status: InstanceStatus, here: string) {
    const address = instanceAddress(status.id);
    const flash = doneMessage(req, status);
    return { ...(await tabsOf(req, deps, status, here)), status, address, tag: tagOf(status), flash };
  }

  function listsOf(status: InstanceStatus) {
    return resources.flatMap((resource) => {
      const list = status.resources[resource.name];
      if (list === undefined) return [];
      const actions = possibleActions(status, resource.name);
      const shown = listView(resource, list, status, site, now());
      return [{ ...shown, actions, handler: handlerView(list, now()) }];
    });
  }

  function problemsOf(status: InstanceStatus) {
    return Object.fromEntries(
      Object.entries(status.resources).map(([name, list]) => [name, list.problems] as const),
    );
  }

  /** Finds the titles of records, which stand beside their ids. */
  async function namesOf(
    status: InstanceStatus,
    wanted: readonly (readonly [string, string])[],
  ): Promise<NameOf> {
    const names = new Map<string, string>();
    const find = async ([name, id]: readonly [string, string]) => {
      const resource = resources.find((one) => one.name === name);
      if (resource === undefined) return;
      const record = await records.find(status.id, name, id);
      if (record?.document) names.set(`${name}/${id}`, recordView(record, resource).title);
    };
    await Promise.all(wanted.map(find));
    return (resource, id) => names.get(`${resource}/${id}`);
  }

  /** Dead letters, rejected records and writes, with the names of their records. */
  async function troubleOf(
    status: InstanceStatus,
    problems: ReturnType<typeof problemsOf>,
    writes: InstanceStatus['outbox']['writes'],
  ) {
    const nameOf = await namesOf(status, [
      ...Object.entries(problems).flatMap(([resource, { dead_letters }]) =>
        dead_letters.map(({ id }) => [resource, id] as const),
      ),
      ...writes.flatMap(({ object }) => recordOf(object)),
    ]);
    const address = instanceAddress(status.id);
    return {
      sections: problemSections(resources, status.resources, problems, address, nameOf),
      outbox: outboxView(status, writes, nameOf, now()),
    };
  }

  router.get('/instances/:id', noStore, async (req, res) => {
    const { status } = await ownInstance(req, deps);
    const frame = await frameOf(req, status, '');
    const found = problemSections(resources, status.resources, problemsOf(status), frame.address);
    renderPage(res, 200, 'instance', {
      ...frame,
      message: instanceMessage(status, site, now()),
      freshness: companyFreshness(status, now()),
      lists: listsOf(status),
      actions: possibleActions(status),
      failure: tokenFailure(status),
      sections: found.filter(({ kind }) => kind === 'rejected'),
      flash: (await otherCompany(req, status.name)) ?? frame.flash,
    });
  });

  router.get('/instances/:id/status', noStore, async (req, res) => {
    const { status } = await ownInstance(req, deps);
    const etag = tagOf(status);
    res.setHeader('ETag', etag);
    // Express never answers 304 to `no-cache`, which an open page sends.
    if (req.get('if-none-match') === etag) res.status(304).end();
    else res.json(status);
  });

  router.get('/instances/:id/runs', noStore, async (req, res) => {
    const { status } = await ownInstance(req, deps);
    const runs = await deps.status.readRuns(status.id);
    if (req.accepts(['html', 'json']) === 'json') {
      res.json(runs);
      return;
    }
    const days = await deps.status.readDays(status.id, now());
    const actions = await deps.actions.list({ instanceId: status.id, limit: ACTIONS_READ });
    renderPage(res, 200, 'runs', {
      ...(await frameOf(req, status, 'runs')),
      charts: resources.flatMap(({ name, title }) => {
        const isPaused = {
          company: status.status === 'paused',
          list: status.resources[name]?.paused ?? false,
        };
        const chart = chartView(days[name] ?? [], pausedDays(actions, name, isPaused, now()));
        return chart === undefined ? [] : [{ name, title, ...chart }];
      }),
      rows: historyRows(runs, site, status, now()),
    });
  });

  router.get('/instances/:id/problems', noStore, async (req, res) => {
    const { status } = await ownInstance(req, deps);
    const { id } = status;
    const [problems, writes] = await Promise.all([deps.status.readProblems(id), deps.status.readWrites(id)]);
    renderPage(res, 200, 'problems', {
      ...(await frameOf(req, status, 'problems')),
      ...(await troubleOf(status, problems, writes)),
    });
  });

  /** @param mistake in a form of the page: what is wrong, and what was typed */
  async function showSettings(req: Request, res: Response, status: InstanceStatus, mistake?: object) {
    const runs = Object.values(await deps.status.readRuns(status.id)).flat();
    const { sections, outbox } = await troubleOf(status, problemsOf(status), status.outbox.writes);
    renderPage(res, mistake === undefined ? 200 : 400, 'settings', {
      ...(await frameOf(req, status, 'settings')),
      mistake,
      lists: listsOf(status),
      actions: possibleActions(status),
      outbox,
      sections: sections.filter(({ kind }) => kind === 'dead'),
      failure: tokenFailure(status),
      budget: budgetFacts(status.budget, runs, now()),
      token: tokenFacts(status),
    });
  }

  router.get('/instances/:id/settings', noStore, async (req, res) => {
    const { status } = await ownInstance(req, deps);
    await showSettings(req, res, status);
  });

  actionRoutes(
    router,
    '',
    deps,
    (req) => ownInstance(req, deps),
    (req) => ownCompany(req, deps),
    async (req, { field, message }: FieldError) => {
      const { status } = await ownInstance(req, deps);
      const [list, typed] = [pathValue(req, 'resource'), req.body as Record<string, string>];
      if (req.res) await showSettings(req, req.res, status, { list, field, message, typed });
    },
  );

  /** The message for a browser that wanted another company than the one that was authorized. */
  async function otherCompany(req: Request, name: string) {
    const { wanted } = req.query;
    if (typeof wanted !== 'string' || wanted === pathValue(req, 'id')) return undefined;
    const { browserId = '' } = req.session;
    const other = (await deps.browsers.sees(browserId, wanted)) ? await deps.status.read(wanted) : undefined;
    const link = {
      address: startAddress(`${deps.publicUrl}/install`, instanceAddress(wanted)),
      text: other === undefined ? 'Sign in with another company' : `Authorize ${other.name}`,
    };
    const needs =
      other?.status === 'needs_reauthorization' ? 'still needs its authorization' : 'has not changed';
    const rest =
      other === undefined
        ? 'The address that you opened belongs to another company, or to none.'
        : `${other.name} ${needs}.`;
    return { tone: 'warn', text: `You authorized ${name}. ${rest}`, link };
  }

  return router;
}
