import type { CookieOptions, Request, RequestHandler } from 'express';
import session, { type SessionData, Store } from 'express-session';
import { type BrowserStore, hashSecret, INSTALL_KEPT_MS, SESSION_LIFETIME_MS } from '../store/browsers.ts';

/**
 * The cookie outlives every session, whose row has the real end. So no answer renews the cookie, and none overwrites the
 * newer one of another tab. Browsers keep no cookie longer.
 */
const COOKIE_LIFETIME_MS = 400 * 24 * 60 * 60_000;

/** A session in use is prolonged at most this often. */
const TOUCH_EVERY_MS = 60 * 60_000;

const SESSION_COOKIE = 'partner_app.sid';
const INSTALL_COOKIE = 'partner_app.install.';

declare module 'express-session' {
  interface SessionData {
    browserId?: string;
    /** Milliseconds since 1970. */
    expiresAt?: number;
  }
}

/** Sessions as rows. A session names a browser and holds nothing else. */
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

  /** The install that starts the session writes its row. */
  override set(_sid: string, _data: SessionData, done?: (error?: unknown) => void): void {
    done?.();
  }

  /** No answer waits for a touch, and a lost one costs nothing. */
  override touch(sid: string, { expiresAt = 0 }: SessionData, done?: () => void): void {
    const until = Date.now() + SESSION_LIFETIME_MS;
    if (expiresAt < until - TOUCH_EVERY_MS) {
      this.#browsers.touchSession(hashSecret(sid), until).catch(() => undefined);
    }
    done?.();
  }

  /** A log-out or a new install deletes the row. */
  override destroy(_sid: string, done?: (error?: unknown) => void): void {
    done?.();
  }
}

/** Cookies of the app, and the session middleware. SameSite=Lax, as the service's redirect must carry them. */
export class BrowserCookies {
  readonly #options: CookieOptions;
  readonly #prefix: string;
  readonly sessions: RequestHandler;

  /** @param https adds Secure and the prefix `__Host-`, so that no other host of the domain sets the cookies */
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

  /** Sets the nonce of an install, in a cookie of its own. */
  setNonce(req: Request, nonce: string): void {
    const name = `${this.#prefix}${INSTALL_COOKIE}${hashSecret(nonce).slice(0, 12)}`;
    req.res?.cookie(name, nonce, { ...this.#options, maxAge: INSTALL_KEPT_MS });
  }

  /** The nonces of the installs that this browser began. */
  nonces(req: Request): string[] {
    const begins = this.#prefix + INSTALL_COOKIE;
    return (req.get('cookie') ?? '')
      .split(';')
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(begins))
      .map((pair) => pair.slice(pair.indexOf('=') + 1));
  }

  /** A new session id for an install to store. `start` makes it the request's session. */
  newSession(req: Request): { carriedSid: string | undefined; newSid: string; start: () => void } {
    const fresh = { sessionStore: req.sessionStore } as Request;
    req.sessionStore.generate(fresh);
    return {
      carriedSid: req.session.browserId === undefined ? undefined : req.sessionID,
      newSid: fresh.sessionID,
      start: () => Object.assign(req, { sessionID: fresh.sessionID, session: fresh.session }),
    };
  }

  clear(req: Request): void {
    (req as { session?: unknown }).session = undefined;
    req.res?.clearCookie(this.#prefix + SESSION_COOKIE, this.#options);
  }
}
