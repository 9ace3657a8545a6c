import { ROUTES } from '../../contract/api/api.ts';
import { OAUTH_ROUTE } from '../../contract/routes.ts';
import type { Host } from '../host.ts';
import type { Answer } from '../http/answer.ts';
import { SHOWN, shownCompanies } from './panel-data.ts';
import { renderPage } from './render.ts';

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

/** The sandbox's front page: what it is and where, and a control panel, which its script fills and keeps going. */
export function frontPage({ world, addresses }: Host): Answer {
  const { clock, companies, applications } = world;
  return renderPage('front.eta', {
    addresses,
    now: clock.now(),
    frozen: clock.frozen,
    companies: shownCompanies(world),
    companiesHidden: Math.max(0, companies.all().length - SHOWN.companies),
    applications: applications.all(),
    routeGroups: ROUTE_GROUPS,
  });
}
