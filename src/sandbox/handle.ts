import { SANDBOX_DEFAULTS } from '../contract/sandbox.ts';
import { applicationOf, perform } from './control/control.ts';
import { loadWorld, saveWorld } from './snapshots.ts';
import type * as Types from './types.ts';
import type { Host } from './world.ts';

/** All of a running sandbox that does not depend on its server. */
export type Handle = Omit<Types.Sandbox, keyof Types.Addresses | 'exposed' | 'close'>;

const epochOf = (at: Types.Moment | Date): Types.Moment => (at instanceof Date ? at.getTime() : at);

/** The sandbox's calls for the process that it runs in: they do what the control interface does. */
export function createHandle(host: Host): Handle {
  const post = <Answer>(path: string, body: object = {}) => perform(host, 'POST', path, body) as Answer;
  const get = <Answer>(path: string) => perform(host, 'GET', path) as Answer;
  const remove = (path: string) => void perform(host, 'DELETE', path);
  const move = (to: Types.ClockMove) => post<Types.ClockState>('/clock', to).now;
  const idOf = <Name extends string>(
    ref: string | { readonly [Key in Name]: string } | undefined,
    name: Name,
  ) => (typeof ref === 'object' ? ref[name] : ref);
  const consentOf = (application?: Types.ApplicationRef, teammate?: Types.TeammateRef) => {
    return { client_id: idOf(application, 'client_id'), teammate_id: idOf(teammate, 'id') };
  };
  return {
    get application() {
      const { client_id, client_secret, redirect_uris } = applicationOf(
        host.world,
        SANDBOX_DEFAULTS.clientId,
      );
      return { client_id, client_secret, redirect_uris: [...redirect_uris] };
    },
    company: (spec) => post('/companies', spec),
    companies: () => get<Types.State>('/state').companies,
    register: (spec) => post('/applications', spec),
    authorize: (application, teammate, { redirectUri: redirect_uri, state } = {}) =>
      post('/authorize', { ...consentOf(application, teammate), redirect_uri, state }),
    tokens: (application, teammate) => post('/tokens', consentOf(application, teammate)),
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
    requests: (filter = {}) => {
      const asked = Object.entries(typeof filter === 'number' ? { after: filter } : filter);
      const given = asked.flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]));
      return get(`/requests?${new URLSearchParams(Object.fromEntries(given))}`);
    },
    received: (wanted) => post('/received', wanted),
    state: () => get('/state'),
    snapshot: () => post<{ id: string }>('/snapshot').id,
    restore: (id) => void post('/restore', { id }),
    save: (file) => saveWorld(host.world, file),
    load: (file) => loadWorld(host.world, file),
    reset: () => host.reset(),
  };
}
