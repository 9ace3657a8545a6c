import type { CookieOptions, Request, RequestHandler } from 'express';
import session from 'express-session';
import type { Redis } from 'ioredis';
import type { PendingInstall } from '../install/install-types.ts';
import { sessionClient } from './redis-session-client.ts';
import { WrittenSessions } from './session-store.ts';

const DAY_SECONDS = 24 * 60 * 60;
const SESSION_SECONDS = 30 * DAY_SECONDS;
/** A session that has not installed anything only has to outlive a visit to the consent page. */
const VISITOR_SECONDS = 60 * 60;

/** Name of the session cookie, where there is no https. */
export const SESSION_COOKIE = 'partner_app.sid';

/**
 * A cookie's name for browsers: by https with the prefix that keeps other hosts of the domain from setting it
 * (RFC 6265bis, "Cookie Name Prefixes").
 */
export function cookieName(name: string, https: boolean): string {
  return https ? `__Host-${name}` : name;
}

/** What the names of sessions in Redis begin with; the id follows. */
export const SESSION_PREFIX = 'session:';

/** A message that the next page shows once. */
export interface Flash {
  tone: 'good' | 'warn';
  text: string;
}

/** A callback that succeeded: digests of its spent state and code, and the instance that it led to. */
export interface FinishedInstall {
  stateDigest: string;
  codeDigest: string;
  instanceId: string;
}

declare module 'express-session' {
  interface SessionData {
    /** Ids of the instances that this browser installed, newest first. */
    instances?: string[];
    /** In which access generation it sees each of them; one that is missing is in the first. */
    accessGenerations?: Record<string, number>;
    pendingInstalls?: PendingInstall[];
    /** The callbacks that succeeded last, newest first. */
    finishedInstalls?: FinishedInstall[];
    flash?: Flash;
  }
}

/** What the session middleware needs to know. */
export interface SessionOptions {
  redis: Redis;
  secret: string;
  /** Whether browsers reach the app by https, so that the cookie may insist on it. */
  https: boolean;
}

/** The attributes of every cookie of this app. */
export function cookieOptions(https: boolean): CookieOptions {
  return { httpOnly: true, sameSite: 'lax', secure: https, path: '/' };
}

/**
 * Sessions in Redis: 30 days from the last visit, none for visitors who only look.
 * The cookie is set by every answer; `browserSessions` leaves it out of most.
 * SameSite=Lax and not Strict, as the service's redirect to the callback has to bring the cookie along.
 */
export function sessions(options: SessionOptions): RequestHandler {
  return session({
    name: cookieName(SESSION_COOKIE, options.https),
    secret: options.secret,
    store: new WrittenSessions({
      client: sessionClient(options.redis),
      prefix: SESSION_PREFIX,
      ttl: (data) => (data.instances?.length ? SESSION_SECONDS : VISITOR_SECONDS),
    }),
    resave: false,
    saveUninitialized: false,
    rolling: true,
    cookie: { ...cookieOptions(options.https), maxAge: SESSION_SECONDS * 1_000 },
  });
}

/** The session cookie as the browser sent it, whatever it is worth. */
export function sessionCookie(req: Request): string | undefined {
  return cookieValue(req, cookieName(SESSION_COOKIE, req.secure));
}

/**
 * The session's id in that cookie, whether or not there is such a session. Its signature is not looked at: who makes one
 * up learns from it whether it has ended, and nobody guesses one.
 */
export function sentSessionId(req: Request): string | undefined {
  return /^s(?::|%3A)([\w-]{32})\./i.exec(sessionCookie(req) ?? '')?.[1];
}

/** A cookie's value as the browser sent it. */
export function cookieValue(req: Request, name: string): string | undefined {
  const pairs = (req.get('cookie') ?? '').split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
}
