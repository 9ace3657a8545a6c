import { SANDBOX_DEFAULTS } from '../contract/sandbox.ts';
import { perform } from './control/control.ts';
import { Problem } from './http/answer.ts';
import { grantWithoutBrowser } from './oauth/authorize.ts';
import { exchangeCode } from './oauth/token.ts';
import { loadWorld, saveWorld } from './snapshots.ts';
import type * as Types from './types.ts';
import type { Host } from './world.ts';

/** All of a running sandbox that does not depend on its server. */
export type Handle = Omit<Types.Sandbox, keyof Types.Addresses | 'exposed' | 'close'>;

function applicationOf({ world }: Host, ref: Types.ApplicationRef): Types.Application {
  const clientId = typeof ref === 'string' ? ref : ref.client_id;
  const application = world.applications.get(clientId);
  if (application === undefined) throw new Problem(404, `There is no application ${clientId}.`);
  return application;
}

/** The id of a teammate, or of a company's first administrator: by default the first company's. */
function teammateIdOf({ world }: Host, ref: Types.TeammateRef | undefined): string {
  const id = (typeof ref === 'string' ? ref : ref?.id) ?? world.companies.all()[0]?.id;
  if (id === undefined) throw new Problem(404, 'There is no company yet.');
  const company = world.companies.get(id);
  if (company === undefined) return id;
  return company.tables.teammates.all().find(({ is_admin }) => is_admin)?.id ?? '';
}

const epochOf = (at: Types.Moment | Date): Types.Moment => (at instanceof Date ? at.getTime() : at);

/** The sandbox's calls for the process that it runs in: they do what the control interface does. */
export function createHandle(host: Host): Handle {
  const post = <Answer>(path: string, body: object = {}) => perform(host, 'POST', path, body) as Answer;
  const get = <Answer>(path: string) => perform(host, 'GET', path) as Answer;
  const remove = (path: string) => void perform(host, 'DELETE', path);
  const move = (to: Types.ClockMove) => post<Types.ClockState>('/clock', to).now;
  const { clientId } = SANDBOX_DEFAULTS;
  const authorize: Handle['authorize'] = (application = clientId, teammate, request = {}) => {
    const { client_id, redirect_uris } = applicationOf(host, application);
    const { redirectUri: redirect_uri = redirect_uris[0] ?? '', state } = request;
    const query = { client_id, redirect_uri, ...(state !== undefined && { state }) };
    return grantWithoutBrowser(host.world, query, teammateIdOf(host, teammate));
  };
  return {
    get application() {
      const { client_id, client_secret, redirect_uris } = applicationOf(host, clientId);
      return { client_id, client_secret, redirect_uris: [...redirect_uris] };
    },
    company: (spec) => post('/companies', spec),
    companies: () => get<Types.State>('/state').companies,
    register: (spec) => post('/applications', spec),
    authorize,
    tokens(application = clientId, teammate) {
      const registered = applicationOf(host, application);
      const { code } = authorize(application, teammate);
      const parameters = new Map(Object.entries({ code, redirect_uri: registered.redirect_uris[0] ?? '' }));
      return JSON.parse(String(exchangeCode(host.world, registered, parameters).body));
    },
    clock: {
      now: () => host.world.clock.now(),
      advance: (ms) => move({ advance_ms: ms }),
      set: (at) => move({ set: epochOf(at) }),
      freeze: (at) => move({ frozen: true, ...(at !== undefined && { set: epochOf(at) }) }),
      run: () => move({ frozen: false }),
    },
    faults: {
      order: (order) => post<{ id: string }>('/faults', order).id,
      list: () => get('/faults'),
      remove: (id) => remove(`/faults/${encodeURIComponent(id)}`),
      clear: () => remove('/faults'),
    },
    guards: { add: (guard) => void post('/guards', guard), clear: () => remove('/guards') },
    changeRecords: (companyId, changes) =>
      post(`/companies/${encodeURIComponent(companyId)}/records`, changes),
    requests: (after = 0) => get(`/requests?after=${after}`),
    state: () => get('/state'),
    snapshot: () => post<{ id: string }>('/snapshot').id,
    restore: (id) => void post('/restore', { id }),
    save: (file) => saveWorld(host.world, file),
    load: (file) => loadWorld(host.world, file),
    reset: () => host.reset(),
  };
}
