import type { Host } from '../host.ts';
import type { LimitScope } from '../limits/limiter.ts';
import type { Reading } from '../limits/window.ts';
import type { Application } from '../state/applications.ts';
import type { Company } from '../state/company.ts';
import type { Token } from '../state/tokens.ts';

/** A great number of tokens would make the state slow to read. */
const TOKENS_SHOWN = 1_000;

function ids(things: readonly { id: string }[]): string[] {
  return things.map(({ id }) => id);
}

/** A company as the control interface shows it: what it owns, as arrays of ids. */
export function showCompany(company: Company) {
  const { id, name, plan, addonRpm, teammates, apiTokens, knowledgeBases, contacts, conversations } = company;
  return {
    id,
    name,
    plan,
    addon_rpm: addonRpm,
    teammates,
    api_tokens: apiTokens,
    inboxes: ids(company.inboxes),
    tags: ids(company.tags),
    channels: ids(company.channels),
    responses: ids(company.responses),
    knowledge_bases: ids(knowledgeBases),
    articles: knowledgeBases.flatMap((base) => ids(base.articles)),
    counts: {
      contacts: contacts.count,
      conversations: conversations.count,
      teammates: teammates.length,
      inboxes: company.inboxes.length,
      tags: company.tags.length,
      channels: company.channels.length,
      responses: company.responses.length,
      knowledge_bases: knowledgeBases.length,
    },
  };
}

/** An application with its credentials. */
export function showApplication({ name, kind, clientId, clientSecret, redirectUris }: Application) {
  return { name, kind, client_id: clientId, client_secret: clientSecret, redirect_uris: redirectUris };
}

function showToken({ id, kind, grant, issuedAt, expiresAt }: Token) {
  return {
    id,
    kind,
    application: grant.application.clientId,
    company_id: grant.company.id,
    teammate_id: grant.teammateId,
    issued_at: issuedAt,
    expires_at: expiresAt,
  };
}

function showLimit({ company, scope, reading }: { company: Company; scope: LimitScope; reading: Reading }) {
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

/** `GET /_sandbox/state`; times in ms since 1970. Tokens are the valid ones, newest first, without their values. */
export function showState({ world, addresses }: Host) {
  const { clock, applications, companies, tokens, limiter } = world;
  const now = clock.now();
  return {
    now,
    frozen: clock.frozen,
    api_url: addresses.apiUrl,
    auth_url: addresses.authUrl,
    applications: applications.all().map(showApplication),
    companies: companies.all().map(showCompany),
    tokens: tokens.valid(now, TOKENS_SHOWN).map(showToken),
    limits: limiter.list(now).map(showLimit),
  };
}
