import { randomBytes } from 'node:crypto';
import { setBounded } from './bounded-map.ts';
import type { Grant } from './tokens.ts';

/** How long a code may be exchanged, in milliseconds: the most that RFC 6749, section 4.1.2, recommends. */
const CODE_LIFETIME_MS = 10 * 60_000;
const CODES_KEPT = 10_000;

interface Code {
  grant: Grant;
  redirectUri: string;
  expiresAt: number;
  used: boolean;
}

/** Authorization codes: short-lived, single-use, bound to an application and its redirect address. */
export class Codes {
  /** By value; plain data. */
  state = new Map<string, Code>();

  /** Issues a code for a grant. It lives for ten minutes. */
  issue(grant: Grant, redirectUri: string, now: number): string {
    const value = randomBytes(24).toString('base64url');
    const code = { grant, redirectUri, expiresAt: now + CODE_LIFETIME_MS, used: false };
    setBounded(this.state, value, code, CODES_KEPT);
    return value;
  }

  /** The grant of a code, also of a used or expired one. */
  grantOf(value: string): Grant | undefined {
    return this.state.get(value)?.grant;
  }

  /**
   * Spends a code. A second use by its own application revokes the tokens of the first use, because someone may have
   * stolen the code (RFC 6749, 4.1.2). A wrong application or redirect address does not spend it.
   *
   * @returns the grant, or the reason for `error_description`
   */
  redeem(value: string, clientId: string, redirectUri: string, now: number): Grant | string {
    const code = this.state.get(value);
    if (code?.grant.clientId !== clientId) return 'The code is unknown.';
    if (code.redirectUri !== redirectUri)
      return 'redirect_uri differs from that of the authorization request.';
    if (code.used) {
      code.grant.revoked = true;
      return 'The code was used before; its tokens are revoked.';
    }
    if (now >= code.expiresAt) return 'The code has expired.';
    code.used = true;
    return code.grant;
  }
}
