import type { Host } from '../host.ts';
import { type Answer, json, Problem } from '../http/answer.ts';
import { type Call, mediaType, parseJson, splitTarget } from '../http/call.ts';
import { findRoute, type Route } from '../http/router.ts';
import { describeService } from '../openapi/describe.ts';
import { changeRecords } from '../state/change-records.ts';
import { moveClock } from './move-clock.ts';
import { check, SCHEMA } from './schemas.ts';
import { showFault } from './show-fault.ts';
import { showApplication, showCompany, showState } from './state.ts';

/** Where the control interface lives, below the sandbox's origin. */
export const CONTROL_PATH = '/_sandbox';

const BODY_MAX_BYTES = 1024 * 1024;
/** Pages of other origins get neither to read nor to keep any of this. */
const HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

type ControlHandler = (host: Host, body: unknown, call: Call, params: Record<string, string>) => Answer;

function afterOf(call: Call): number {
  const after = call.query.get('after') ?? '0';
  if (!/^\d{1,15}$/.test(after)) throw new Problem(400, 'after must be a whole number.');
  return Number(after);
}

function addCompany({ world }: Host, body: unknown): Answer {
  return json(201, showCompany(world.companies.add(check(SCHEMA.company, body))));
}

function changeCompanyRecords({ world }: Host, body: unknown, _call: Call, { company_id = '' }): Answer {
  const company = world.companies.get(company_id);
  if (company === undefined) throw new Problem(404, `There is no company ${company_id}.`);
  return json(200, changeRecords(company, check(SCHEMA.records, body), world.clock.now()));
}

function addApplication({ world, exposed }: Host, body: unknown): Answer {
  const application = check(SCHEMA.application, body);
  const {
    name,
    kind,
    scopes,
    redirect_uris: redirectUris,
    introspection_url: introspectionUrl,
  } = application;
  if (exposed && introspectionUrl !== undefined) {
    // Whoever reaches it from elsewhere could have it call services that only this machine may reach.
    throw new Problem(
      403,
      'introspection_url: a sandbox that listens beyond this machine calls nobody on it.',
    );
  }
  const credentials = { clientId: application.client_id, clientSecret: application.client_secret };
  const spec = { name, kind, scopes, redirectUris, introspectionUrl, ...credentials };
  return json(201, showApplication(world.applications.register(spec)));
}

function orderFault({ world }: Host, body: unknown): Answer {
  const { match, fault, times } = check(SCHEMA.fault, body);
  return json(201, { id: world.faults.order(match, fault, times) });
}

function removeFault({ world }: Host, _body: unknown, _call: Call, { id = '' }): Answer {
  if (!world.faults.remove(id)) throw new Problem(404, `There is no fault ${id}.`);
  return json(200, { deleted: 1 });
}

function addGuard({ world }: Host, body: unknown): Answer {
  const { tier, requests, per_ms: windowMs, paths } = check(SCHEMA.guard, body);
  world.guards.add({ tier, limit: requests, windowMs, paths });
  return json(201, { tier });
}

function showClock({ world: { clock } }: Host): Answer {
  return json(200, { now: clock.now(), frozen: clock.frozen });
}

function takeSnapshot({ world, snapshots }: Host, body: unknown): Answer {
  check(SCHEMA.nothing, body);
  return json(201, { id: snapshots.take(world) });
}

function restoreSnapshot(host: Host, body: unknown): Answer {
  host.snapshots.restore(host.world, check(SCHEMA.restore, body).id);
  return showClock(host);
}

function reset(host: Host, body: unknown): Answer {
  check(SCHEMA.nothing, body);
  host.reset();
  return showClock(host);
}

const ROUTES: readonly Route<ControlHandler>[] = [
  { method: 'GET', path: '/state', handle: (host) => json(200, showState(host)) },
  {
    method: 'GET',
    path: '/openapi.json',
    handle: ({ world }, _, call) => {
      const origin = call.baseUrl.slice(0, -CONTROL_PATH.length);
      return json(200, describeService({ origin, guards: world.settings.guards }));
    },
  },
  {
    method: 'GET',
    path: '/requests',
    handle: ({ world }, _, call) => json(200, world.journal.after(afterOf(call))),
  },
  {
    method: 'GET',
    path: '/calls',
    handle: ({ world }, _, call) => json(200, world.calls.after(afterOf(call))),
  },
  { method: 'POST', path: '/companies', handle: addCompany },
  { method: 'POST', path: '/companies/:company_id/records', handle: changeCompanyRecords },
  { method: 'POST', path: '/applications', handle: addApplication },
  {
    method: 'POST',
    path: '/clock',
    handle: ({ world }, body) => json(200, moveClock(world.clock, check(SCHEMA.clock, body))),
  },
  { method: 'GET', path: '/faults', handle: ({ world }) => json(200, world.faults.list().map(showFault)) },
  { method: 'POST', path: '/faults', handle: orderFault },
  { method: 'DELETE', path: '/faults', handle: ({ world }) => json(200, { deleted: world.faults.clear() }) },
  { method: 'DELETE', path: '/faults/:id', handle: removeFault },
  { method: 'POST', path: '/guards', handle: addGuard },
  { method: 'DELETE', path: '/guards', handle: ({ world }) => json(200, { deleted: world.guards.clear() }) },
  { method: 'GET', path: '/snapshots', handle: ({ snapshots }) => json(200, snapshots.list()) },
  { method: 'POST', path: '/snapshot', handle: takeSnapshot },
  { method: 'POST', path: '/restore', handle: restoreSnapshot },
  { method: 'POST', path: '/reset', handle: reset },
];

/**
 * The JSON body of a POST; an empty one is an empty object. Only `application/json` is taken: a page of another origin
 * cannot send that without being allowed to first, and nobody allows it.
 */
async function bodyOf(call: Call): Promise<unknown> {
  if (call.method !== 'POST') return {};
  if (mediaType(call.headers['content-type']) !== 'application/json') {
    throw new Problem(415, 'A POST to the control interface must be application/json.');
  }
  const body = await call.body(BODY_MAX_BYTES);
  return body.length === 0 ? {} : parseJson(body);
}

/** The control interface. Throws a `Problem` for what cannot be done. */
export async function control(host: Host, call: Call): Promise<Answer> {
  const { handle, params } = findRoute(ROUTES, call.method, call.path);
  const body = await bodyOf(call);
  const answer = handle(host, body, call, params);
  return { ...answer, headers: { ...answer.headers, ...HEADERS } };
}

/**
 * Does within this process what a request to the control interface asks for.
 *
 * @param target path below the interface, with its query
 * @returns the answer's JSON. Throws a `Problem` for what cannot be done
 */
export function perform(host: Host, method: string, target: string, body: unknown = {}): unknown {
  const { path, search } = splitTarget(target);
  const { handle, params } = findRoute(ROUTES, method, path);
  const call = { query: new URLSearchParams(search) } as Call;
  return JSON.parse(String(handle(host, body, call, params).body));
}
