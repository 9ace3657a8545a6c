import { Problem } from '../http/answer.ts';
import { introspect } from '../outgoing.ts';
import type { Application } from '../types.ts';
import { type ApiContext, type ApiRequest, type Handlers, own } from './request.ts';

/**
 * The application of a channel: the one that `settings.application_uid` names, or the one that creates it. Throws a
 * `Problem`: 422 when there is none of that name, 403 when an application names another than itself.
 */
function applicationOf({ world, caller }: ApiContext, uid: unknown): Application | undefined {
  if (uid === undefined) return world.applications.get(caller.application);
  const application = typeof uid === 'string' ? world.applications.get(uid) : undefined;
  if (application === undefined) {
    throw new Problem(422, 'settings.application_uid: no such application is registered.');
  }
  if (caller.application !== undefined && caller.application !== application.client_id) {
    throw new Problem(403, 'settings.application_uid: an application can create only its own channels.');
  }
  return application;
}

/**
 * The name and address that an external service gives a new channel (Authentication, 10), in place of those sent. The
 * sandbox asks about a channel of the type `application` with a token, if the application has an introspection
 * address. It does not keep the token: every application of the company may read channels. Throws a `Problem`.
 */
async function identified(request: ApiRequest<'createChannel'>) {
  const { type, settings = {} } = request.body;
  if (type !== 'application') return {};
  const application = applicationOf(request, settings.application_uid);
  const { token, ...kept } = settings;
  if (application?.introspection_url === undefined || token === undefined) return {};
  if (typeof token !== 'string' || token === '') {
    throw new Problem(422, 'settings.token: must be the text that the external service gave out.');
  }
  const url = new URL(application.introspection_url);
  const identity = await introspect(request.world, application, url, request.company.id, token);
  return { ...identity, settings: kept };
}

export const channelHandlers = {
  createChannel: async (request) => {
    const { at } = request;
    const { id: inbox_id, is_private } = request.reach('inboxes', request.params.inbox_id);
    const body = { ...request.body, ...(await identified(request)) };
    const { type, address = null, send_as = null, settings = {} } = body;
    const name = body.name ?? address ?? send_as ?? type;
    const set = { name, address, send_as, settings, inbox_id, is_private, created_at: at, updated_at: at };
    return request.add('channels', (id) => ({ ...own(body), ...set, id }));
  },
} satisfies Partial<Handlers>;
