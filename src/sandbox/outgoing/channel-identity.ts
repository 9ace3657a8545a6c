import type { ApiContext } from '../api/request.ts';
import { Problem } from '../http/answer.ts';
import type { Application } from '../state/applications.ts';
import type { ChannelIdentity } from './ask-server.ts';
import { introspect } from './introspect.ts';

type ChannelSettings = Record<string, unknown>;

/** What of a new channel's body matters here. */
interface NewChannel {
  type: string;
  settings?: ChannelSettings | undefined;
}

/** A channel's name and address, and what of its settings is kept. */
interface NamedChannel extends ChannelIdentity {
  settings: ChannelSettings;
}

/**
 * The application that a channel is for: the one that `settings.application_uid` names, or the one that creates it.
 * Throws a {@link Problem}: 422 when there is none of that name, 403 when an application names another than itself.
 */
function applicationOf({ world, caller }: ApiContext, named: unknown): Application | undefined {
  if (named === undefined) return world.applications.get(caller.application ?? '');
  const application = typeof named === 'string' ? world.applications.get(named) : undefined;
  if (application === undefined) {
    throw new Problem(422, 'settings.application_uid: no application is registered as that.');
  }
  if (caller.application !== undefined && caller.application !== application.clientId) {
    throw new Problem(403, 'settings.application_uid: an application creates channels of its own alone.');
  }
  return application;
}

/**
 * The name and address that an external service gives to a new channel (Authentication, 10): one of the type
 * `application`, with a token in its settings, of an application that has an introspection address. Any other keeps
 * those that were sent: undefined.
 *
 * The token is not kept with the channel then: it is a secret of the external service, and every application of the
 * company may read channels.
 *
 * Throws a {@link Problem} when the external service was asked and gives none: see {@link introspect}.
 */
export async function channelIdentity(
  request: ApiContext,
  { type, settings = {} }: NewChannel,
): Promise<NamedChannel | undefined> {
  if (type !== 'application') return undefined;
  const application = applicationOf(request, settings.application_uid);
  const { token, ...kept } = settings;
  if (application?.introspectionUrl === undefined || token === undefined) return undefined;
  if (typeof token !== 'string' || token === '') {
    throw new Problem(422, 'settings.token: must be the text that the external service gave out.');
  }
  const url = new URL(application.introspectionUrl);
  const identity = await introspect(request.world, application, url, request.company.id, token);
  return { ...identity, settings: kept };
}
