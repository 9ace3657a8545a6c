import { randomBytes } from 'node:crypto';
import {
  ACCESS_TOKEN_LIFETIME_MS,
  addMonths,
  REFRESH_TOKEN_LIFETIME_MONTHS,
  ROTATION_WINDOW_MS,
} from '../../contract/lifetimes.ts';
import type { Scope } from '../../contract/scopes.ts';
import { setBounded } from './bounded-map.ts';

/** A teammate's authorization of an application. Its tokens live and end with it. */
export interface Grant {
  clientId: string;
  companyId: string;
  teammateId: string;
  scopes: readonly Scope[];
  revoked: boolean;
}

/** A token of either kind; times in ms since 1970. It is valid while now is before `expiresAt`. */
export interface Token {
  id: string;
  kind: 'access' | 'refresh';
  value: string;
  grant: Grant;
  issuedAt: number;
  expiresAt: number;
  /** This token alone was revoked, not the grant. */
  revoked?: boolean;
}

/** The tokens of an answer of the token route. */
export type TokenPair = Record<Token['kind'], Token>;

/** Far more than a year of hourly refreshes needs; the oldest go first. */
const TOKENS_KEPT = 100_000;

/** Whether it was revoked, alone or with its grant. */
export function isRevoked({ grant, revoked }: Token): boolean {
  return grant.revoked || revoked === true;
}

/** Whether the token opens anything at this moment, in ms since 1970. */
export function isValid(token: Token, now: number): boolean {
  return !isRevoked(token) && now < token.expiresAt;
}

/**
 * Access and refresh tokens through their life (States and transitions, "Token lifecycle").
 *
 * A refresh gives a new access token; earlier ones stay valid until their own end. The refresh token stays the same
 * until its last 24 hours, when each refresh gives a new one. The old one then stays valid until its own end: nothing in
 * the specification ends it, and an answer that got lost does no harm this way.
 */
export class Tokens {
  /** Called after the service issued tokens. */
  onIssue: () => void = () => {};
  /** By value, and how many were ever issued; plain data. */
  state = { tokens: new Map<string, Token>(), count: 0 };

  /** Tokens of a grant (60 minutes, and 6 months). @param kept a refresh token that stays */
  issue(grant: Grant, now: number, kept?: Token): TokenPair {
    const access = this.#issue('access', grant, now, now + ACCESS_TOKEN_LIFETIME_MS);
    const refresh = kept ?? this.#issue('refresh', grant, now, addMonths(now, REFRESH_TOKEN_LIFETIME_MONTHS));
    this.onIssue();
    return { access, refresh };
  }

  /** New tokens for a valid refresh token: the same refresh token, or a new one in its last 24 hours. */
  refresh(token: Token, now: number): TokenPair {
    return this.issue(token.grant, now, token.expiresAt - now <= ROTATION_WINDOW_MS ? undefined : token);
  }

  /** The token of this kind with this value, valid or not; undefined when it was never issued. */
  find(kind: Token['kind'], value: string): Token | undefined {
    const token = this.state.tokens.get(value);
    return token?.kind === kind ? token : undefined;
  }

  /** The newest valid tokens, newest first. */
  valid(now: number, most: number): Token[] {
    const all = [...this.state.tokens.values()].filter((token) => isValid(token, now));
    return all.reverse().slice(0, most);
  }

  /** Adds a token: a new one, or one of an earlier run. */
  add(kept: Omit<Token, 'id'>): Token {
    this.state.count += 1;
    const token: Token = { ...kept, id: `${kept.kind}-${this.state.count}` };
    setBounded(this.state.tokens, token.value, token, TOKENS_KEPT);
    return token;
  }

  #issue(kind: Token['kind'], grant: Grant, issuedAt: number, expiresAt: number): Token {
    const value = `${kind === 'access' ? 'at' : 'rt'}_${randomBytes(32).toString('base64url')}`;
    return this.add({ kind, value, grant, issuedAt, expiresAt });
  }
}
