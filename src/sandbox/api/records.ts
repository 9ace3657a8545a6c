import type { CheckedBodyOf } from '../../contract/api/api.ts';
import { SCOPE } from '../../contract/scopes.ts';
import { conversationsCsv, filenameOf, METRICS_DEFAULT, standOf } from '../data/analytics.ts';
import { DEFAULTS } from '../data/literals.ts';
import type { Tag, Teammate } from '../data/record.ts';
import { Problem } from '../http/answer.ts';
import { listPage } from './list.ts';
import { type ApiContext, type ApiRequest, type Handlers, own, Ready } from './request.ts';

const DEFAULT_RANGE_S = 30 * 86_400;

/** What a new event has where the body says nothing. */
const EVENT = { object: null, payload: {} };

/** Throws a `Problem` (422) when the new parent is the tag itself or below it, or of another kind. */
function checkParent({ tables }: ApiContext, tag: Tag, parent: Tag): void {
  if (parent.is_private !== tag.is_private) {
    throw new Problem(422, 'parent_tag_id: a shared tag and a private tag cannot be parent and child.');
  }
  for (let above: Tag | undefined = parent; above !== undefined; ) {
    if (above.id === tag.id) {
      throw new Problem(422, `parent_tag_id: ${parent.id} is ${tag.id} itself or one of its children.`);
    }
    above = tables.tags.find(above.parent_tag_id ?? '');
  }
}

/**
 * The names after a change: the whole name and its parts say the same. A whole name is parted at its first blank.
 * Throws a `Problem` (422) when nothing would be left of them.
 */
function namesAfter(teammate: Teammate, body: CheckedBodyOf<'updateTeammate'>) {
  if (body.first_name === undefined && body.last_name === undefined) {
    const { name } = body;
    if (name === undefined) return teammate;
    const [first_name = '', ...others] = name.trim().split(/\s+/);
    return { first_name, last_name: others.join(' '), name };
  }
  const { first_name = teammate.first_name, last_name = teammate.last_name } = body;
  const name = `${first_name} ${last_name}`.trim();
  if (name === '') throw new Problem(422, 'first_name, last_name: one of them is needed.');
  return { first_name, last_name, name };
}

/**
 * The client id of the application in the path. Throws a `Problem`: 404 when there is none with that, 403 when the token
 * is of another application (an API token may speak for any).
 */
function applicationOf({ world, caller, params }: ApiContext & { params: { application_uid: string } }) {
  const { application_uid: uid } = params;
  if (world.applications.get(uid) === undefined) throw new Problem(404, `There is no ${uid} here.`);
  if (caller.application !== undefined && caller.application !== uid) {
    throw new Problem(403, `The token is of ${caller.application}, not of ${uid}.`);
  }
  return uid;
}

/** What reports and exports keep of a request. Throws a `Problem` (422) when the time ends before it begins. */
function job({ body, at }: ApiRequest<'createReport'> | ApiRequest<'createExport'>) {
  const end = body.end ?? at;
  const start = body.start ?? Math.max(0, end - DEFAULT_RANGE_S);
  if (start >= end) throw new Problem(422, 'start: must be before end.');
  const { timezone = 'UTC', filters = {} } = body;
  return { ...own(body), start, end, timezone, filters, created_at: at };
}

/** Handlers of tags, accounts, links, teammates, application events and analytics that do more than read. */
export const recordHandlers = {
  updateTag: (request) => {
    const { body } = request;
    const tag = request.reach('tags', request.params.tag_id);
    if (typeof body.parent_tag_id === 'string') {
      checkParent(request, tag, request.named('tags', body.parent_tag_id));
    }
    return request.change('tags', { ...tag, ...own(body), teammate_id: tag.teammate_id });
  },

  createChildTag: (request) => {
    const { body, at } = request;
    const { id: parent_tag_id, is_private, teammate_id } = request.reach('tags', request.params.tag_id);
    const set = { parent_tag_id, is_private, teammate_id, created_at: at, updated_at: at };
    return request.add('tags', (id) => ({ ...DEFAULTS.tags, ...own(body), ...set, id }));
  },

  createAccount: (request) => {
    const { body, at } = request;
    const dates = { created_at: at, updated_at: at };
    return request.add('accounts', (id) => ({ ...DEFAULTS.accounts, ...own(body), ...dates, id }));
  },

  updateAccount: (request) => {
    const account = request.reach('accounts', request.params.account_id);
    return request.change('accounts', { ...account, ...own(request.body) });
  },

  createLink: (request) => {
    const { body, at } = request;
    const { external_url = null } = body;
    const dates = { created_at: at, updated_at: at };
    return request.add('links', (id) => {
      const name = body.name ?? external_url ?? id;
      return { ...DEFAULTS.links, ...own(body), ...dates, id, name, external_url };
    });
  },

  updateTeammate: (request) => {
    const { body } = request;
    const teammate = request.reach('teammates', request.params.teammate_id);
    if (body.signature !== undefined && !request.reachesPrivate) {
      throw new Problem(403, `signature is private: it takes an API token with the scope ${SCOPE.private}.`);
    }
    const { first_name, last_name, name } = namesAfter(teammate, body);
    const { email, is_admin, is_blocked } = teammate;
    const kept = { email, is_admin, is_blocked, first_name, last_name, name };
    return request.change('teammates', { ...teammate, ...own(body), ...kept });
  },

  listApplicationEvents: (request) => {
    const uid = applicationOf(request);
    return listPage(request, 'application_events', (event) => event.application_uid === uid);
  },

  createApplicationEvent: (request) => {
    const application_uid = applicationOf(request);
    const set = { application_uid, status: 'accepted', created_at: request.at } as const;
    return request.add('application_events', (id) => ({ ...EVENT, ...own(request.body), ...set, id }));
  },

  getApplicationEvent: (request) => {
    const uid = applicationOf(request);
    const event = request.reach('application_events', request.params.event_id);
    if (event.application_uid !== uid) throw new Problem(404, `There is no ${event.id} here.`);
    return request.show('application_events', event);
  },

  createReport: (request) => {
    const { metrics = METRICS_DEFAULT } = request.body;
    const report = { ...job(request), metrics };
    return request.add('analytics_reports', (id) => ({ ...report, id }));
  },

  createExport: (request) => {
    const asked = job(request);
    const { type = 'conversations' } = request.body;
    const csv = conversationsCsv(request.tables.conversations, asked);
    return request.add('analytics_exports', (id) => ({ ...asked, id, type, csv }));
  },

  getExportFile: (request) => {
    const found = request.reach('analytics_exports', request.params.export_id);
    if (standOf(found, request.now).status !== 'done') {
      throw new Problem(404, `${found.id} is not done: there is no file yet.`);
    }
    const headers = {
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="${filenameOf(found)}"`,
    };
    return new Ready({ status: 200, headers, body: found.csv });
  },
} satisfies Partial<Handlers>;
