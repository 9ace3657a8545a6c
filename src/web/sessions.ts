import type { CookieOptions, Request, RequestHandler } from 'express';
import session, { type SessionData, Store } from 'express-session';
import { type BrowserStore, hashSecret, INSTALL_KEPT_MS, SESSION_LIFETIME_MS } from '../store/browsers.ts';

/**
 * The cookie outlives every session: its row tells how long that lasts. So no answer has to renew the cookie, and none can
 * overwrite the newer one of another tab. Browsers keep no cookie longer than 400 days.
 */
const COOKIE_LIFETIME_MS = 400 * 24 * 60 * 60_000;

/** A session in use is prolonged no more often than this, in milliseconds. */
const TOUCH_EVERY_MS = 60 * 60_000;

const SESSION_COOKIE = 'partner_app.sid';
const INSTALL_COOKIE = 'partner_app.install.';

declare module 'express-session' {
  interface SessionData {
    /** The browser whose session it is; all that it sees is found by that. */
    browserId?: string;
    /** Milliseconds since 1970. */
    expiresAt?: number;
  }
}

/** Sessions as rows: a session names a browser, and holds nothing else. */
class DatabaseSessions extends Store {
  readonly #browsers: BrowserStore;

  constructor(browsers: BrowserStore) {
    super();
    this.#browsers = browsers;
  }

  override get(sid: string, done: (error: unknown, data?: SessionData | null) => void): void {
    this.#browsers.findSession(hashSecret(sid), Date.now()).then((found) => {
      done(null, found && { cookie: { originalMaxAge: COOKIE_LIFETIME_MS }, ...found });
    }, done);
  }

  /** The row is written by the install that starts the session, in its transaction. */
  override set(_sid: string, _data: SessionData, done?: (error?: unknown) => void): void {
    done?.();
  }

  /** Prolongs the session, at most once an hour. No answer waits for that, and a lost touch costs nothing. */
  override touch(sid: string, { expiresAt = 0 }: SessionData, done?: () => void): void {
    const until = Date.now() + SESSION_LIFETIME_MS;
    if (expiresAt < until - TOUCH_EVERY_MS) {
      this.#browsers.touchSession(hashSecret(sid), until).catch(() => undefined);
    }
    done?.();
  }

  /** A session ends with its browser's log-out, or with the install that replaces it. */
  override destroy(_sid: string, done?: (error?: unknown) => void): void {
    done?.();
  }
}

/** Cookies of the app, and the session middleware. SameSite=Lax: the service's redirect has to bring them along. */
export class BrowserCookies {
  readonly #options: CookieOptions;
  readonly #prefix: string;
  /** Reads the session of every request. */
  readonly sessions: RequestHandler;

  /** @param https whether browsers reach the app by https: then no other host of the domain can set its cookies */
  constructor(browsers: BrowserStore, secret: string, https: boolean) {
    this.#options = { httpOnly: true, sameSite: 'lax', secure: https, path: '/' };
    this.#prefix = https ? '__Host-' : '';
    this.sessions = session({
      name: this.#prefix + SESSION_COOKIE,
      secret,
      store: new DatabaseSessions(browsers),
      resave: false,
      saveUninitialized: false,
      cookie: { ...this.#options, maxAge: COOKIE_LIFETIME_MS },
    });
  }

  /** Gives the browser the nonce of an install that it begins, in a cookie of its own. */
  setNonce(req: Request, nonce: string): void {
    const name = `${this.#prefix}${INSTALL_COOKIE}${hashSecret(nonce).slice(0, 12)}`;
    req.res?.cookie(name, nonce, { ...this.#options, maxAge: INSTALL_KEPT_MS });
  }

  /** The nonces of the installs that this browser has begun. */
  nonces(req: Request): string[] {
    const begins = this.#prefix + INSTALL_COOKIE;
    return (req.get('cookie') ?? '')
      .split(';')
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(begins))
      .map((pair) => pair.slice(pair.indexOf('=') + 1));
  }

  /** A session with a new id, for an install to write; `start` makes it the request's, whose answer sets its cookie. */
  newSession(req: Request): { carriedSid: string | undefined; newSid: string; start: () => void } {
    const fresh = { sessionStore: req.sessionStore } as Request;
    req.sessionStore.generate(fresh);
    return {
      carriedSid: req.session.browserId === undefined ? undefined : req.sessionID,
      newSid: fresh.sessionID,
      start: () => Object.assign(req, { sessionID: fresh.sessionID, session: fresh.session }),
    };
  }

  /** Takes the session's cookie back. */
  clear(req: Request): void {
    (req as { session?: unknown }).session = undefined;
    req.res?.clearCookie(this.#prefix + SESSION_COOKIE, this.#options);
  }
}
