import type { Host } from '../host.ts';
import type { GuardReading } from '../limits/guard-limiter.ts';
import type { LimitScope, Reading } from '../limits/limiter.ts';
import type { Application } from '../state/applications.ts';
import type { Company } from '../state/company.ts';
import type { Token } from '../state/tokens.ts';
import type * as Shown from '../types.ts';

/** A great number of tokens would make the state slow to read. */
const TOKENS_SHOWN = 1_000;
/** Likewise of guards' buckets. */
const GUARDS_SHOWN = 1_000;

/** A company as the control interface shows it: what it owns, as arrays of ids. */
export function showCompany(company: Company): Shown.Company {
  const { id, name, plan, addonRpm, apiTokens, tables } = company;
  const ids = (table: { all(): { id: string }[] }) => table.all().map((record) => record.id);
  return {
    id,
    name,
    plan,
    addon_rpm: addonRpm,
    teammates: tables.teammates.all(),
    api_tokens: apiTokens,
    inboxes: ids(tables.inboxes),
    tags: ids(tables.tags),
    channels: ids(tables.channels),
    responses: ids(tables.responses),
    accounts: ids(tables.accounts),
    links: ids(tables.links),
    knowledge_bases: ids(tables.knowledge_bases),
    articles: ids(tables.articles),
    counts: Object.fromEntries(Object.entries(tables).map(([kind, { count }]) => [kind, count])),
  };
}

/** An application with its credentials. */
export function showApplication(application: Application): Shown.Application {
  const { name, kind, clientId, clientSecret, redirectUris, scopes, introspectionUrl } = application;
  return {
    name,
    kind,
    client_id: clientId,
    client_secret: clientSecret,
    redirect_uris: [...redirectUris],
    scopes,
    introspection_url: introspectionUrl,
  };
}

/** A valid token, without its value. */
export function showToken({ id, kind, grant, issuedAt, expiresAt }: Token) {
  return {
    id,
    kind,
    application: grant.clientId,
    company_id: grant.companyId,
    teammate_id: grant.teammateId,
    scopes: grant.scopes,
    issued_at: issuedAt,
    expires_at: expiresAt,
  };
}

/** Where one limit of a company stands. */
export function showLimit({
  company,
  scope,
  reading,
}: {
  company: Company;
  scope: LimitScope;
  reading: Reading;
}) {
  return {
    company_id: company.id,
    scope,
    limit: reading.limit,
    remaining: reading.remaining,
    reset_at: reading.resetAt,
    burst_limit: reading.burstLimit,
    burst_remaining: reading.burstRemaining,
    burst_reset_at: reading.burstResetAt ?? null,
  };
}

/** A guard's bucket whose window is open. */
export function showGuard({
  companyId,
  scope,
  guard,
  tier,
  bucket,
  limit,
  remaining,
  resetAt,
}: GuardReading) {
  return { company_id: companyId, scope, guard, tier, bucket, limit, remaining, reset_at: resetAt };
}

/** `GET /_sandbox/state`; times in ms since 1970. Tokens are the valid ones, newest first, without their values. */
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
    tokens: tokens.valid(now, TOKENS_SHOWN).map(showToken),
    limits: limiter.list(companies.all(), now).map(showLimit),
    guards: guards.list(now, GUARDS_SHOWN).map(showGuard),
    call_limits: calls.limits(now),
  };
}
