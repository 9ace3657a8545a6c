import { randomBytes } from 'node:crypto';
import type { InstallSession } from './install-types.ts';

/** How long a state is good for, in milliseconds. */
export const STATE_LIFETIME_MS = 10 * 60_000;

/** Random bytes of a state: 256 bits. */
const STATE_BYTES = 32;

/** Installs under way in one session at most; the oldest makes room. Several tabs are fine, a flood is not. */
const MOST_PENDING = 10;

/**
 * Makes a state and keeps it in the browser's session (Authorize request, "protects against cross-site request
 * forgery").
 *
 * @param now milliseconds since 1970
 */
export function issueState(session: InstallSession, now: number): string {
  const state = randomBytes(STATE_BYTES).toString('base64url');
  const pending = (session.pendingInstalls ?? []).filter((entry) => isAlive(entry.createdAt, now));
  session.pendingInstalls = [...pending, { state, createdAt: now }].slice(-MOST_PENDING);
  return state;
}

/**
 * Spends a state: it is taken out of the session whatever comes of the install.
 *
 * @param now milliseconds since 1970
 * @returns whether this session had handed it out, not longer than ten minutes ago, and it had not come back yet
 */
export function spendState(session: InstallSession, state: string, now: number): boolean {
  const pending = session.pendingInstalls ?? [];
  const found = pending.find((entry) => entry.state === state);
  if (found === undefined) return false;
  session.pendingInstalls = pending.filter((entry) => entry !== found);
  return isAlive(found.createdAt, now);
}

/** The clock may have been set back a little meanwhile. */
function isAlive(createdAt: number, now: number): boolean {
  return Math.abs(now - createdAt) < STATE_LIFETIME_MS;
}
