import type { Order } from '../faults/faults.ts';
import type { Host } from '../host.ts';
import type { GuardReading } from '../limits/guard-limiter.ts';
import type { Limiter } from '../limits/limiter.ts';
import type { Application } from '../state/applications.ts';
import type { Company } from '../state/company.ts';
import type { Token } from '../state/tokens.ts';
import type * as Shown from '../types.ts';

/** A great number of tokens or buckets would make the state slow to read. */
const ROWS_SHOWN = 1_000;

const idsOf = (table: { all(): { id: string }[] }) => table.all().map(({ id }) => id);

/** A company with the ids of what it owns. */
export function showCompany({ id, name, plan, addonRpm, apiTokens, tables }: Company): Shown.Company {
  return {
    id,
    name,
    plan,
    addon_rpm: addonRpm,
    teammates: tables.teammates.all(),
    api_tokens: apiTokens,
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

/** An application with its credentials. */
export function showApplication(application: Application): Shown.Application {
  const { name, kind, scopes, clientId, clientSecret, redirectUris, introspectionUrl } = application;
  const credentials = { client_id: clientId, client_secret: clientSecret, redirect_uris: [...redirectUris] };
  return { name, kind, scopes, ...credentials, introspection_url: introspectionUrl };
}

/** A valid token, without its value. */
export function showToken({ id, kind, grant, issuedAt, expiresAt }: Token): Shown.State['tokens'][number] {
  const { clientId: application, companyId: company_id, teammateId: teammate_id, scopes } = grant;
  const times = { issued_at: issuedAt, expires_at: expiresAt };
  return { id, kind, application, company_id, teammate_id, scopes, ...times };
}

/** Where one limit of a company stands. */
export function showLimit({ company, scope, reading }: ReturnType<Limiter['list']>[number]) {
  const { limit, remaining, resetAt, burstLimit, burstRemaining, burstResetAt = null } = reading;
  const burst = { burst_limit: burstLimit, burst_remaining: burstRemaining, burst_reset_at: burstResetAt };
  return { company_id: company.id, scope, limit, remaining, reset_at: resetAt, ...burst };
}

/** A guard's bucket whose window is open. */
export function showGuard({ companyId, resetAt, ...reading }: GuardReading): Shown.State['guards'][number] {
  return { company_id: companyId, ...reading, reset_at: resetAt };
}

/** A fault that was ordered. */
export function showFault({ times, used, toPass, ...order }: Order): Shown.FaultRow {
  return { ...order, times, used, left: times - used, to_pass: toPass };
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
    applications: applications.all().map(showApplication),
    companies: companies.all().map(showCompany),
    tokens: tokens.valid(now, ROWS_SHOWN).map(showToken),
    limits: limiter.list(companies.all(), now).map(showLimit),
    guards: guards.list(now, ROWS_SHOWN).map(showGuard),
    call_limits: calls.limits(now),
  };
}
