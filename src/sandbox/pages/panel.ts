import { ROUTES } from '../../contract/api/api.ts';
import { PLAN_LIMITS } from '../../contract/limits.ts';
import { OAUTH_ROUTE } from '../../contract/routes.ts';
import { showCompany, showToken } from '../control/state.ts';
import { type Answer, json } from '../http/answer.ts';
import type { Call } from '../http/call.ts';
import { findRoute, type Route } from '../http/router.ts';
import { LIMIT_SCOPES } from '../limits/limiter.ts';
import type { Fault, FaultRow, JournalRow } from '../types.ts';
import type { Host } from '../world.ts';
import { ASSET_ANSWERS, renderPage } from './render.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const FAULT_MAX = 200;

/** Formats for the template. */
const WORDS = {
  /** `2027-03-14 10:30:15`, in UTC. */
  moment: (ms: number) => new Date(ms).toISOString().slice(0, 19).replace('T', ' '),

  /** `59 min 12 s`: the two largest units. */
  span(ms: number): string {
    const pair = (large: number, largeUnit: string, small: number, smallUnit: string) =>
      `${Math.floor(ms / large)} ${largeUnit} ${Math.floor((ms % large) / small)} ${smallUnit}`;
    if (ms < 10 * SECOND_MS) return `${(Math.max(0, ms) / SECOND_MS).toFixed(1)} s`;
    if (ms < MINUTE_MS) return `${Math.ceil(ms / SECOND_MS)} s`;
    if (ms < HOUR_MS) return pair(MINUTE_MS, 'min', SECOND_MS, 's');
    return ms < DAY_MS ? pair(HOUR_MS, 'h', MINUTE_MS, 'min') : pair(DAY_MS, 'd', HOUR_MS, 'h');
  },

  /** The parts of a guard's bucket: a list in JSON, or nothing for a guard that was added. */
  bucket: (bucket: string): string[] => (bucket.startsWith('[') ? JSON.parse(bucket) : []),

  count: (number: number, one: string, more = `${one}s`) =>
    `${number.toLocaleString('en')} ${number === 1 ? one : more}`,

  /** The fault in words: `status 503, headers {"retry-after":"2"}`. */
  fault(fault: Fault): string {
    const parts = Object.entries(fault).filter(([, value]) => value !== undefined);
    const words = parts.map(([part, value]) => `${part} ${JSON.stringify(value)}`).join(', ');
    return words.length > FAULT_MAX ? `${words.slice(0, FAULT_MAX)}…` : words;
  },

  /** The times of a fault: `after 2 more requests, used 0 of 1`. */
  turn({ times, used, left, to_pass }: FaultRow): string {
    if (left === 0) return `used up: ${WORDS.count(times, 'request')}`;
    return `${to_pass > 0 ? `after ${WORDS.count(to_pass, 'more request')}, ` : ''}used ${used} of ${times}`;
  },

  /** `?limit=5 & page_token=abc`, or nothing. */
  query(query: JournalRow['query']): string {
    const pairs = Object.entries(query).map(([name, value]) => `${name}=${[value].flat().join(', ')}`);
    return pairs.length > 0 ? `?${pairs.join(' & ')}` : '';
  },
};

/** Most rows that the panel shows of each kind. */
const SHOWN = { companies: 30, tokens: 30, guards: 100, requests: 100 };
/** Tokens among which the panel looks for the newest refresh token. */
const TOKENS_READ = 1_000;

/** Routes by the first segment of their path, for the form that orders faults. */
const ROUTE_GROUPS = Object.entries({
  'OAuth routes': [
    { method: 'GET', path: OAUTH_ROUTE.authorize },
    { method: 'POST', path: OAUTH_ROUTE.token },
  ],
  ...Object.groupBy(
    ROUTES.map(([, { method, path }]) => ({ method, path })),
    ({ path }) => path.split('/')[1]?.replaceAll('_', ' ') ?? '',
  ),
});

/** The front page: addresses and the control panel. Its script refreshes it. */
function controlPanel({ world, addresses, snapshots }: Host): Answer {
  const { clock, faults, journal, limiter } = world;
  const now = clock.now();
  const companies = world.companies.all();
  const applications = world.applications.all();
  const tokens = world.tokens.valid(now, TOKENS_READ);
  return renderPage('panel.eta', {
    words: WORDS,
    HOUR_MS,
    addresses,
    now,
    frozen: clock.frozen,
    companies: companies.slice(-SHOWN.companies).map((company) => ({
      ...showCompany(company),
      limits: LIMIT_SCOPES.map((scope) => limiter.read(company, scope, now)),
    })),
    hiddenCompanies: companies.length - SHOWN.companies,
    applications,
    names: new Map([
      ...companies.map(({ id, name }) => [id, name] as const),
      ...applications.map(({ client_id, name }) => [client_id, name] as const),
    ]),
    tokens: tokens.slice(0, SHOWN.tokens).map(showToken),
    refreshEnd: tokens.find(({ kind }) => kind === 'refresh')?.expiresAt,
    callLimits: world.calls.limits(now),
    guards: world.guards.list(now, SHOWN.guards),
    routeGroups: ROUTE_GROUPS,
    plans: Object.keys(PLAN_LIMITS),
    faults: faults.list().reverse(),
    snapshots: snapshots.list().reverse(),
    requests: journal.after(journal.count - SHOWN.requests).reverse(),
    requestCount: journal.count,
  });
}

const PAGES: readonly Route<(host: Host) => Answer>[] = [
  { method: 'GET', path: '/', handle: controlPanel },
  { method: 'GET', path: '/healthz', handle: () => json(200, { status: 'ok' }) },
  ...ASSET_ANSWERS.map(([path, answer]) => ({ method: 'GET', path, handle: () => answer })),
];

/** The pages for people, outside the service. Throws a `Problem` (404, 405). */
export function page(host: Host, call: Call): Answer {
  return findRoute(PAGES, call.method, call.path).handle(host);
}
