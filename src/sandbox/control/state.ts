import type { Company } from '../state/companies.ts';
import type { Token } from '../state/tokens.ts';
import type * as Shown from '../types.ts';
import type { Host } from '../world.ts';

/** A great number of tokens or buckets would make the state slow to read. */
const ROWS_SHOWN = 1_000;

const idsOf = (table: { all(): { id: string }[] }) => table.all().map(({ id }) => id);

/** A company with the ids of what it owns. */
export function showCompany(company: Company): Shown.Company {
  const { id, name, plan, addon_rpm, order, api_tokens, tables } = company;
  return {
    id,
    name,
    plan,
    addon_rpm,
    order,
    teammates: tables.teammates.all(),
    api_tokens,
    inboxes: idsOf(tables.inboxes),
    tags: idsOf(tables.tags),
    channels: idsOf(tables.channels),
    responses: idsOf(tables.responses),
    accounts: idsOf(tables.accounts),
    links: idsOf(tables.links),
    knowledge_bases: idsOf(tables.knowledge_bases),
    articles: idsOf(tables.articles),
    counts: Object.fromEntries(Object.entries(tables).map(([kind, { count }]) => [kind, count])),
  };
}

/** A valid token, without its value. */
export function showToken({ id, kind, grant, issuedAt, expiresAt }: Token): Shown.State['tokens'][number] {
  const { clientId: application, companyId: company_id, teammateId: teammate_id, scopes } = grant;
  const times = { issued_at: issuedAt, expires_at: expiresAt };
  return { id, kind, application, company_id, teammate_id, scopes, ...times };
}

/** `GET /_sandbox/state`. */
export function showState({ world, addresses }: Host): Shown.State {
  const { clock, applications, companies, tokens, limiter, guards, calls } = world;
  const now = clock.now();
  return {
    now,
    frozen: clock.frozen,
    api_url: addresses.apiUrl,
    auth_url: addresses.authUrl,
    applications: applications.all(),
    companies: companies.all().map(showCompany),
    tokens: tokens.valid(now, ROWS_SHOWN).map(showToken),
    limits: limiter.list(companies.all(), now),
    guards: guards.list(now, ROWS_SHOWN),
    call_limits: calls.limits(now),
  };
}
