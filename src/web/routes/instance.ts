import { createHash } from 'node:crypto';
import { type Request, Router } from 'express';
import type { InstanceStatus, RunJson } from '../../sync/status-types.ts';
import { actionRoutes, doneMessage, possibleActions } from '../actions.ts';
import { startAddress } from '../install-error-pages.ts';
import { instanceAddress, ownCompany, ownInstance, pathValue } from '../own-instance.ts';
import type { Pages } from '../render.ts';
import { noStore } from '../security.ts';
import { budgetView, tokenView } from '../view/facts-view.ts';
import { instanceMessage } from '../view/instance-message.ts';
import { listView } from '../view/list-view.ts';
import { outboxView } from '../view/outbox-view.ts';
import { problemSections } from '../view/problem-view.ts';
import { runBars, runRow } from '../view/run-view.ts';
import type { WebDependencies } from '../web-dependencies.ts';

/** Runs that the dashboard shows. */
const RUNS_ON_DASHBOARD = 6;

/** The entity tag of a status (RFC 9110, section 8.8.3), without the service's clock. */
function tagOf(status: InstanceStatus): string {
  const facts = JSON.stringify({ ...status, now: undefined });
  return `"${createHash('sha256').update(facts).digest('base64url')}"`;
}

function ofKind(runs: readonly RunJson[] | undefined, kind: RunJson['kind']): RunJson[] {
  return (runs ?? []).filter((run) => run.kind === kind);
}

/** The pages of one instance, the same facts as JSON, and its buttons. */
export function instanceRoutes(deps: WebDependencies, { renderPage, site, now }: Pages): Router {
  const router = Router();
  const { resources } = site;
  const { control } = deps;

  router.get('/instances/:id', noStore, async (req, res) => {
    const { status } = await ownInstance(req, deps);
    const address = instanceAddress(status.id);
    const problems = Object.entries(status.resources).map(([name, list]) => [name, list.problems] as const);
    const found = await control.runs(status.id);
    const history = resources.map((of) => ({ of, runs: ofKind(found[of.name], 'full') }));
    renderPage(res, 200, 'instance', {
      status,
      address,
      tag: tagOf(status),
      message: instanceMessage(status, site, now()),
      lists: resources.flatMap((resource) => {
        const list = status.resources[resource.name];
        if (list === undefined) return [];
        const actions = possibleActions(status, resource.name);
        return [{ ...listView(resource, list, status, site, now()), actions }];
      }),
      actions: possibleActions(status),
      budget: budgetView(status.budget, now()),
      token: tokenView(status),
      outbox: outboxView(status, status.outbox.writes, now()),
      problems: problemSections(resources, status.resources, Object.fromEntries(problems), address),
      history: history.map(({ of, runs }) => ({ title: of.title, bars: runBars(runs) })),
      runs: history
        .flatMap(({ of, runs }) => runs.map((run) => ({ run, of })))
        .sort((a, b) => b.run.id - a.run.id)
        .slice(0, RUNS_ON_DASHBOARD)
        .map(({ run, of }) => runRow(run, of, site, status)),
      flash: (await otherCompany(req, status.name)) ?? doneMessage(req, status),
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
    const runs = await control.runs(status.id);
    if (req.accepts(['html', 'json']) === 'json') {
      res.json(runs);
      return;
    }
    const lists = resources.map((of) => {
      const { name, title } = of;
      const own = ofKind(runs[name], 'full');
      const rows = (kind: RunJson['kind']) =>
        ofKind(runs[name], kind).map((run) => runRow(run, of, site, status));
      return { name, title, bars: runBars(own), runs: rows('full'), checks: rows('check') };
    });
    renderPage(res, 200, 'runs', { status, address: instanceAddress(status.id), lists });
  });

  router.get('/instances/:id/problems', noStore, async (req, res) => {
    const { status } = await ownInstance(req, deps);
    const found = await control.problems(status.id);
    const address = instanceAddress(status.id);
    const sections = problemSections(resources, status.resources, found, address);
    const outbox = outboxView(status, await control.writes(status.id), now());
    renderPage(res, 200, 'problems', { status, address, sections, outbox });
  });

  actionRoutes(
    router,
    '',
    deps,
    (req) => ownInstance(req, deps),
    (req) => ownCompany(req, deps),
  );

  /** The message for a browser that wanted another company than the one that was authorized. */
  async function otherCompany(req: Request, name: string) {
    const { wanted } = req.query;
    if (typeof wanted !== 'string' || wanted === pathValue(req, 'id')) return undefined;
    const { browserId = '' } = req.session;
    const other = (await deps.browsers.sees(browserId, wanted)) ? await control.status(wanted) : undefined;
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
