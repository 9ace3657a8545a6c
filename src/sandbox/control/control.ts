import type { z } from 'zod';
import { ROUTES } from '../../contract/api/api.ts';
import { OAUTH_ROUTE } from '../../contract/routes.ts';
import { SANDBOX_DEFAULTS } from '../../contract/sandbox.ts';
import { CLOCK_MAX_MS } from '../clock.ts';
import { type Answer, check, json, Problem } from '../http/answer.ts';
import { type Call, mediaType, parseJson, splitTarget } from '../http/call.ts';
import { findRoute, matchPath, type Route } from '../http/router.ts';
import { grantWithoutBrowser } from '../oauth/authorize.ts';
import { exchangeCode } from '../oauth/token.ts';
import { describeService } from '../openapi/describe-service.ts';
import * as openapi from '../openapi/nodes.ts';
import { loadWorld, saveWorld } from '../snapshots.ts';
import { changeRecords, unknownId } from '../state/change-records.ts';
import type * as Shown from '../types.ts';
import type { Host } from '../world.ts';
import { findReceived } from './received.ts';
import { SCHEMA } from './schemas.ts';
import { showCompany, showState } from './state.ts';

/** Where the control interface lives, below the sandbox's origin. */
export const CONTROL_PATH = '/_sandbox';

const BODY_MAX_BYTES = 1024 * 1024;
/** Pages of other origins get neither to read nor to keep any of this. */
const HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

/** What a call sends besides its body or query: the path's placeholders, and where the interface was reached. */
interface Place {
  params: Readonly<Record<string, string>>;
  baseUrl: string;
}

/** One call of the interface. */
interface ControlCall<Sent = unknown> {
  summary: string;
  /** Of a POST's body; of the query otherwise. */
  sent: z.ZodType<Sent>;
  status: 200 | 201;
  /** Members of the JSON object that it answers; undefined for a list of objects. */
  answers: readonly string[] | undefined;
  run(host: Host, sent: Sent, place: Place): unknown;
}

/** A row of the table. @param target method and path */
function row<Sent>(
  target: `${'GET' | 'POST' | 'DELETE'} /${string}`,
  summary: string,
  sent: z.ZodType<Sent>,
  answer: Pick<ControlCall, 'status' | 'answers'>,
  run: ControlCall<Sent>['run'],
): Route<ControlCall> {
  const [method = '', path = ''] = target.split(' ');
  return { method, path, handle: { summary, sent, ...answer, run } };
}

/** What a call answers, by its status and the members of the JSON object. */
const shown = <Shape>(...answers: (keyof Shape & string)[]) => ({ status: 200, answers }) as const;
const added = <Shape>(...answers: (keyof Shape & string)[]) => ({ status: 201, answers }) as const;

const LIST = { status: 200, answers: undefined } as const;
const STATE = shown<Shown.State>('now', 'frozen', 'api_url', 'auth_url', 'applications', 'companies');
const COMPANY = added<Shown.Company>('id', 'name', 'plan', 'teammates', 'api_tokens', 'counts');
const APPLICATION = added<Shown.Application>('client_id', 'client_secret', 'redirect_uris', 'kind', 'scopes');
const RECORDS = shown<Shown.ChangedRecords>('created', 'deleted', 'changed', 'reordered');
const CLOCK = shown<Shown.ClockState>('now', 'frozen');
const TOKENS = shown<Shown.TokenAnswer>('access_token', 'refresh_token', 'expires_at', 'token_type');
const ID = added<{ id: string }>('id');
const DELETED = shown<{ deleted: number }>('deleted');
const DOCUMENT = shown<{ openapi: string; paths: object }>('openapi', 'paths');

function showClock({ world: { clock } }: Host): Shown.ClockState {
  return { now: clock.now(), frozen: clock.frozen };
}

function addApplication(host: Host, application: z.output<typeof SCHEMA.application>) {
  const { world, exposed, publicUrl } = host;
  if ((exposed || publicUrl !== undefined) && application.introspection_url !== undefined) {
    // Everybody who reaches it could have it call services that only this machine may reach.
    throw new Problem(403, 'introspection_url: a sandbox that listens beyond this machine calls no server.');
  }
  return world.applications.register(application);
}

/** Freezes or unfreezes the clock, sets it, and then moves it on, whichever is asked for. */
function moveClock(host: Host, { advance_ms = 0, set, frozen }: z.output<typeof SCHEMA.clock>) {
  const { clock } = host.world;
  const target = (set ?? clock.now()) + advance_ms;
  if (target > CLOCK_MAX_MS) {
    throw new Problem(400, `The clock goes no further than ${new Date(CLOCK_MAX_MS).toISOString()}.`);
  }
  if (frozen !== undefined) clock.freeze(frozen);
  if (set !== undefined || advance_ms > 0) clock.set(target);
  return showClock(host);
}

function changeRecordsOf({ world }: Host, changes: Shown.RecordChanges, { params }: Place) {
  const company = world.companies.get(params.company_id ?? '');
  if (company === undefined) throw new Problem(404, `There is no company ${params.company_id}.`);
  return changeRecords(company, changes, world.clock.now());
}

/** How many characters differ at least: inserted, left out or replaced. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [i, char] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const replaced = (row[j] ?? 0) + (char === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

/** The name that is most like a given one; undefined without names. */
function nearestOf(given: string, names: readonly string[]): string | undefined {
  const near = names.map((name) => ({ name, by: distance(given.slice(0, 200), name) }));
  return near.toSorted((a, b) => a.by - b.by)[0]?.name;
}

/** @throws Problem (400) that names the nearest if no route has this path */
function checkPath(member: string, path: string): void {
  const paths = [...ROUTES.map(([, route]) => route.path), ...Object.values(OAUTH_ROUTE)];
  if (paths.some((route) => matchPath(route, path) !== undefined)) return;
  throw new Problem(400, `${member}: no route has ${path}. The nearest is ${nearestOf(path, paths)}.`);
}

/** @throws Problem (400) that names the nearest if there is no such route or company: the fault would never happen */
function checkMatch({ companies }: Host['world'], { path, company_id }: Shown.FaultMatch): void {
  if (path !== undefined) checkPath('match.path', path);
  if (company_id === undefined || companies.get(company_id) !== undefined) return;
  const nearest = nearestOf(
    company_id,
    companies.all().map(({ id }) => id),
  );
  const instead = nearest === undefined ? 'There is none yet' : `The nearest is ${nearest}`;
  throw new Problem(400, `match.company_id: there is no company ${company_id}. ${instead}.`);
}

/**
 * Throws a {@link Problem}: 400 for a fault that no request can meet, 404 for one that changes a record which none of its
 * companies has.
 */
function orderFault({ world }: Host, { match, fault, times }: z.output<typeof SCHEMA.fault>) {
  checkMatch(world, match ?? {});
  const companies = world.companies.all().filter(({ id }) => (match?.company_id ?? id) === id);
  const { records } = fault;
  const unknown = records === undefined ? [] : companies.map((company) => unknownId(company, records));
  if (unknown[0] !== undefined && !unknown.includes(undefined)) {
    throw new Problem(404, `fault.records: There is no ${unknown[0]}.`);
  }
  return { id: world.faults.order(match, fault, times) };
}

/** @throws Problem (404) */
export function applicationOf({ applications }: Host['world'], clientId: string): Shown.Application {
  const application = applications.get(clientId);
  if (application === undefined) throw new Problem(404, `There is no application ${clientId}.`);
  return application;
}

/** The id of a teammate, or of a company's first administrator: by default the first company's. */
function teammateIdOf({ world }: Host, ref: string | undefined): string {
  const id = ref ?? world.companies.all()[0]?.id;
  if (id === undefined) throw new Problem(404, 'There is no company yet.');
  const company = world.companies.get(id);
  if (company === undefined) return id;
  const administrators = company.tables.teammates.all().filter(({ is_admin }) => is_admin);
  return (administrators.find(({ is_blocked }) => !is_blocked) ?? administrators[0])?.id ?? '';
}

type Consent = z.output<typeof SCHEMA.consent>;

/** Consents as a teammate does on the page. */
function authorize(host: Host, { client_id = SANDBOX_DEFAULTS.clientId, teammate_id, ...more }: Consent) {
  const { redirect_uris } = applicationOf(host.world, client_id);
  const { redirect_uri = redirect_uris[0] ?? '', state } = more;
  const query = { client_id, redirect_uri, ...(state !== undefined && { state }) };
  return grantWithoutBrowser(host.world, query, teammateIdOf(host, teammate_id));
}

/** Consents, and exchanges the code: the answer of the token route. */
function issueTokens(host: Host, consent: Consent): Shown.TokenAnswer {
  const { client_id = SANDBOX_DEFAULTS.clientId } = consent;
  const application = applicationOf(host.world, client_id);
  const { redirect_uri = application.redirect_uris[0] ?? '' } = consent;
  const parameters = new Map(Object.entries({ code: authorize(host, consent).code, redirect_uri }));
  return JSON.parse(String(exchangeCode(host.world, application, parameters).body));
}

/** Runs with a file of this machine. @throws Problem: 403 for a sandbox that others reach, 400 if the file cannot be used */
function withFile(host: Host, run: () => void): Shown.ClockState {
  if (host.exposed || host.publicUrl !== undefined) {
    throw new Problem(403, 'file: a sandbox that listens beyond this machine reads and writes no file.');
  }
  try {
    run();
  } catch (error) {
    throw new Problem(400, `file: ${(error as Error).message}`);
  }
  return showClock(host);
}

function listRequests({ world: { journal } }: Host, sent: z.output<typeof SCHEMA.requests>) {
  const rows = journal
    .after(sent.after)
    .filter(({ method }) => method === (sent.method?.toUpperCase() ?? method))
    .filter((row) => sent.path === undefined || matchPath(sent.path, journal.pathOf(row)) !== undefined)
    .slice(0, sent.limit);
  return sent.details === 'true' ? rows.map((row) => journal.detailed(row)) : rows;
}

function removeFault({ world }: Host, _sent: unknown, { params: { id = '' } }: Place) {
  if (!world.faults.remove(id)) throw new Problem(404, `There is no fault ${id}.`);
  return { deleted: 1 };
}

const CALLS: readonly Route<ControlCall>[] = [
  row('GET /state', 'Shows everything but records and requests', SCHEMA.ignored, STATE, showState),
  row('GET /openapi.json', 'Describes the service', SCHEMA.ignored, DOCUMENT, ({ world }, _, { baseUrl }) =>
    describeService(baseUrl.slice(0, -CONTROL_PATH.length), world.settings),
  ),
  row('GET /control.json', 'Describes these calls', SCHEMA.ignored, DOCUMENT, (_host, _sent, { baseUrl }) =>
    describeControl(baseUrl),
  ),
  row('GET /requests', 'Lists requests to the service', SCHEMA.requests, LIST, listRequests),
  row(
    'POST /received',
    'Finds a request to the service',
    SCHEMA.received,
    shown<Shown.JournalRow>('n', 'method', 'path', 'status'),
    ({ world }, wanted) => findReceived(world.journal, wanted),
  ),
  row('GET /calls', 'Lists calls to applications', SCHEMA.after, LIST, ({ world }, { after }) =>
    world.calls.after(after),
  ),
  row('POST /companies', 'Adds a company', SCHEMA.company, COMPANY, ({ world }, spec) =>
    showCompany(world.companies.add(spec)),
  ),
  row('POST /companies/:company_id/records', 'Changes records', SCHEMA.records, RECORDS, changeRecordsOf),
  row('POST /applications', 'Registers an application', SCHEMA.application, APPLICATION, addApplication),
  row(
    'POST /authorize',
    'Consents without a browser',
    SCHEMA.consent,
    shown<{ code: string; url: string }>('code', 'url'),
    authorize,
  ),
  row('POST /tokens', 'Consents, and exchanges the code', SCHEMA.consent, TOKENS, issueTokens),
  row('POST /save', 'Saves everything to a file', SCHEMA.file, CLOCK, (host, { file }) =>
    withFile(host, () => saveWorld(host.world, file)),
  ),
  row('POST /load', 'Goes on from a file', SCHEMA.file, CLOCK, (host, { file }) =>
    withFile(host, () => loadWorld(host.world, file)),
  ),
  row('POST /clock', 'Freezes, sets and moves the clock', SCHEMA.clock, CLOCK, moveClock),
  row('GET /faults', 'Lists faults', SCHEMA.ignored, LIST, ({ world }) => world.faults.list()),
  row('POST /faults', 'Orders a fault', SCHEMA.fault, ID, orderFault),
  row('DELETE /faults', 'Forgets all faults', SCHEMA.ignored, DELETED, ({ world }) => ({
    deleted: world.faults.clear(),
  })),
  row('DELETE /faults/:id', 'Forgets a fault', SCHEMA.ignored, DELETED, removeFault),
  row('POST /guards', 'Adds a guard', SCHEMA.guard, added<Shown.GuardSpec>('tier'), ({ world }, guard) => {
    for (const path of guard.paths ?? []) checkPath('paths', path);
    world.guards.add(guard);
    return { tier: guard.tier };
  }),
  row('DELETE /guards', 'Removes added guards', SCHEMA.ignored, DELETED, ({ world }) => ({
    deleted: world.guards.clear(),
  })),
  row('GET /snapshots', 'Lists snapshots', SCHEMA.ignored, LIST, ({ snapshots }) => snapshots.list()),
  row('POST /snapshot', 'Keeps everything as it is', SCHEMA.nothing, ID, ({ world, snapshots }) => ({
    id: snapshots.take(world),
  })),
  row('POST /restore', 'Goes back to a snapshot', SCHEMA.restore, CLOCK, (host, { id }) => {
    host.snapshots.restore(host.world, id);
    return showClock(host);
  }),
  row('POST /reset', 'Goes back to the start', SCHEMA.nothing, CLOCK, (host) => {
    host.reset();
    return showClock(host);
  }),
];

function queryParameters({ sent }: ControlCall): object[] {
  const { properties = {} } = openapi.sentSchema(sent);
  return Object.entries(properties as object).map(([name, schema]) => ({ name, in: 'query', schema }));
}

function describeCall({ method, path, handle }: Route<ControlCall>): object {
  const { summary, sent, status, answers } = handle;
  const object = { type: 'object', ...(answers && { required: answers }) };
  const answer = answers ? object : { type: 'array', items: object };
  return {
    operationId: method.toLowerCase() + openapi.pascalCase(path),
    summary,
    parameters: [...openapi.pathParameters(path), ...(method === 'POST' ? [] : queryParameters(handle))],
    ...(method === 'POST' && { requestBody: openapi.requestBody(sent) }),
    responses: {
      [status]: { description: 'Done.', content: openapi.content(answer) },
      '4XX': openapi.refer('responses', 'Error'),
    },
  };
}

/** The interface in OpenAPI 3.1. @param url where it was reached */
function describeControl(url: string) {
  const summary = 'How tests control the sandbox; the service has a description of its own.';
  const content = openapi.content(openapi.refer('schemas', 'Error'));
  return {
    openapi: '3.1.1',
    info: { title: 'Control of the sandbox', summary, version: '1.0.0' },
    servers: [{ url }],
    paths: openapi.paths(CALLS, describeCall),
    components: {
      schemas: { Error: openapi.ERROR_SCHEMA },
      responses: { Error: { description: 'It cannot be done.', content } },
    },
  };
}

/**
 * The JSON body of a POST; an empty one is an empty object. Only `application/json` is taken: a page of another origin
 * cannot send that without being allowed to first, and nobody allows it.
 */
async function bodyOf(call: Call): Promise<unknown> {
  if (mediaType(call.headers['content-type']) !== 'application/json') {
    throw new Problem(415, 'A POST to the control interface must be application/json.');
  }
  return parseJson(await call.body(BODY_MAX_BYTES));
}

/** The control interface. Throws a {@link Problem} for what cannot be done. */
export async function control(host: Host, call: Call): Promise<Answer> {
  const { handle, params } = findRoute(CALLS, call.method, call.path);
  const sent = call.method === 'POST' ? await bodyOf(call) : Object.fromEntries(call.query);
  const answer = handle.run(host, check(handle.sent, sent, 400), { params, baseUrl: call.baseUrl });
  return json(handle.status, answer, HEADERS);
}

/**
 * Does within this process what a request to the control interface asks for.
 *
 * @param target path below the interface, with its query
 * @returns the answer's JSON. Throws a {@link Problem} for what cannot be done
 */
export function perform(host: Host, method: string, target: string, body: unknown = {}): unknown {
  const { path, search } = splitTarget(target);
  const { handle, params } = findRoute(CALLS, method, path);
  const sent = method === 'POST' ? body : Object.fromEntries(new URLSearchParams(search));
  const place = { params, baseUrl: (host.publicUrl ?? host.addresses.origin) + CONTROL_PATH };
  return JSON.parse(JSON.stringify(handle.run(host, check(handle.sent, sent, 400), place)));
}
