import type { Host } from '../host.ts';
import type { Answer } from '../http/answer.ts';
import { renderPage } from './render.ts';

const HOUR_MS = 60 * 60_000;
const BEFORE_END_MS = 12 * HOUR_MS;
const REQUESTS_SHOWN = 12;
/** As many tokens as are looked through for the newest refresh token. */
const TOKENS_READ = 1_000;

/** Where the clock must go to stand 12 hours before the end of the newest refresh token; undefined without one. */
function beforeRefreshEnd({ world }: Host): { at: number; passed: boolean } | undefined {
  const now = world.clock.now();
  const token = world.tokens.valid(now, TOKENS_READ).find(({ kind }) => kind === 'refresh');
  return token && { at: token.expiresAt - BEFORE_END_MS, passed: token.expiresAt - BEFORE_END_MS <= now };
}

/** The sandbox's front page: what it is, its addresses, companies and clock. */
export function frontPage(host: Host): Answer {
  const { world, addresses } = host;
  const { clock, companies, applications, journal } = world;
  return renderPage('front.eta', {
    addresses,
    now: clock.now(),
    frozen: clock.frozen,
    hourMs: HOUR_MS,
    rotation: beforeRefreshEnd(host),
    companies: companies.all(),
    applications: applications.all(),
    requests: journal.after(journal.count - REQUESTS_SHOWN).reverse(),
  });
}
