import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Request, Response } from 'express';
import type { PendingInstall } from '../install/install-types.ts';
import { STATE_LIFETIME_MS } from '../install/state.ts';
import { cookieName, cookieOptions, cookieValue } from './session.ts';

/**
 * Remembers in a cookie of its own that this browser has begun an install. The session does that, too; but of two
 * tabs that begin at once in a browser without a session, each gets one, and the browser keeps only the later.
 */
export class BegunInstalls {
  readonly #secret: string;
  readonly #https: boolean;

  constructor(secret: string, https: boolean) {
    this.#secret = secret;
    this.#https = https;
  }

  /** @param now milliseconds since 1970 */
  remember(res: Response, state: string, now: number): void {
    res.cookie(this.#name(state), `${now}.${this.#sign(state, now)}`, {
      ...cookieOptions(this.#https),
      maxAge: STATE_LIFETIME_MS,
    });
  }

  /** The install with this state, if this browser's cookie says that it began it, however long ago. */
  find(req: Request, state: string): PendingInstall | undefined {
    const [, createdAt = '', signature = ''] =
      /^(\d{1,15})\.([\w-]{43})$/.exec(cookieValue(req, this.#name(state)) ?? '') ?? [];
    if (signature === '') return undefined;
    const expected = this.#sign(state, Number(createdAt));
    if (!timingSafeEqual(Buffer.from(signature), Buffer.from(expected))) return undefined;
    return { state, createdAt: Number(createdAt) };
  }

  /** Takes the cookie back, if there is one: the state is spent. */
  forget(req: Request, res: Response, state: string): void {
    const name = this.#name(state);
    if (cookieValue(req, name) !== undefined) res.clearCookie(name, cookieOptions(this.#https));
  }

  #name(state: string): string {
    const mark = createHmac('sha256', this.#secret)
      .update(`install name ${state}`)
      .digest('hex')
      .slice(0, 16);
    return cookieName(`partner_app.install.${mark}`, this.#https);
  }

  #sign(state: string, now: number): string {
    return createHmac('sha256', this.#secret).update(`install begun ${now} ${state}`).digest('base64url');
  }
}
