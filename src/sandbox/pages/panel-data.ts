import { showFault } from '../control/show-fault.ts';
import { showGuard, showLimit, showToken } from '../control/state.ts';
import type { Host } from '../host.ts';
import { LIMIT_SCOPES } from '../limits/limiter.ts';
import type { World } from '../world.ts';

/** So much is shown at most: the panel is for people. */
export const SHOWN = { companies: 30, tokens: 30, guards: 100, requests: 100 } as const;
/** As many tokens as are looked through for the newest refresh token. */
const TOKENS_READ = 1_000;

/** The companies that the panel shows: the newest, oldest of them first. */
export function shownCompanies({ companies }: World) {
  return companies.all().slice(-SHOWN.companies);
}

function company(world: World, one: ReturnType<typeof shownCompanies>[number], now: number) {
  const { id, name, plan, tables } = one;
  return {
    id,
    name,
    plan,
    contacts: tables.contacts.count,
    conversations: tables.conversations.count,
    limits: LIMIT_SCOPES.map((scope) =>
      showLimit({ company: one, scope, reading: world.limiter.read(one, scope, now) }),
    ),
  };
}

/**
 * All that moves on the control panel, in one answer; times in ms since 1970.
 *
 * @param after number of the newest request that the panel has; what the journal has no more is left out
 * @param resets how many resets the panel knows of: after another one the journal began anew, and is sent from its start
 */
export function panelData({ world, snapshots, resets: known }: Host, after: number, resets: number) {
  const { clock, companies, applications, tokens, guards, calls, faults, journal } = world;
  const now = clock.now();
  const valid = tokens.valid(now, TOKENS_READ);
  return {
    now,
    frozen: clock.frozen,
    companies: shownCompanies(world).map((one) => company(world, one, now)),
    company_count: companies.all().length,
    applications: applications.all().map(({ clientId, name, kind }) => ({ client_id: clientId, name, kind })),
    tokens: valid.slice(0, SHOWN.tokens).map(showToken),
    refresh_ends_at: valid.find(({ kind }) => kind === 'refresh')?.expiresAt ?? null,
    call_limits: calls.limits(now),
    guards: guards.list(now, SHOWN.guards).map(showGuard),
    faults: faults.list().map(showFault),
    snapshots: snapshots.list(),
    requests: journal.after(Math.max(resets === known ? after : 0, journal.count - SHOWN.requests)),
    last_request: journal.count,
    resets: known,
  };
}
