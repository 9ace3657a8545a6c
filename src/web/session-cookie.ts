import { createHash } from 'node:crypto';
import type { RequestHandler, Response } from 'express';
import type { Redis } from 'ioredis';
import { within } from './redis-session-client.ts';
import {
  cookieName,
  cookieValue,
  SESSION_COOKIE,
  SESSION_PREFIX,
  type SessionOptions,
  sessions,
} from './session.ts';

/** A browser is given a cookie that it has already no more often than this, in seconds. */
const RENEWAL_SECONDS = 24 * 60 * 60;

// A session that has ended, or was replaced, is not renewed.
const TAKE_RENEWAL = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if redis.call('SET', KEYS[2], '1', 'EX', ARGV[1], 'NX') then return 1 end
return 0`;

/**
 * The sessions, with a cookie that no late answer takes away: an answer does not set the cookie that its request came
 * with, as the browser may have a newer one by then, of another tab's install. A page that is asked for renews it, once
 * a day, if a look just before it is sent shows that the session still is there, whichever process has changed it.
 */
export function browserSessions(options: SessionOptions): RequestHandler[] {
  const name = cookieName(SESSION_COOKIE, options.https);
  const renewing = new WeakSet<Response>();

  /** Goes before the sessions, so that it comes after them when the headers are written. */
  const keepNewer: RequestHandler = (req, res, next) => {
    const known = cookieValue(req, name);
    const writeHead = res.writeHead;
    res.writeHead = ((...args: Parameters<typeof writeHead>) => {
      if (known !== undefined && !renewing.has(res)) leaveOut(res, `${name}=${known};`);
      return writeHead.apply(res, args);
    }) as typeof writeHead;
    next();
  };

  /** Goes after the sessions, so that it comes before them when the answer ends. */
  const renew: RequestHandler = (req, res, next) => {
    if (req.method !== 'GET' || !req.session.instances?.length) return next();
    const { sessionID } = req;
    const end = res.end;
    res.end = ((...args: Parameters<typeof end>) => {
      res.end = end;
      if (res.headersSent) return end.apply(res, args);
      takeRenewal(options.redis, sessionID)
        .then((isDue) => isDue && renewing.add(res))
        // Redis is away: it is renewed another time.
        .catch(() => undefined)
        .then(() => end.apply(res, args))
        .catch(next);
      return res;
    }) as typeof end;
    next();
  };

  return [keepNewer, sessions(options), renew];
}

/**
 * Takes the turn to renew a session's cookie, which comes once a day; who sets a new cookie takes it as well.
 *
 * @returns false when it was taken already, or there is no such session any more
 * @throws StoreUnavailableError
 */
export async function takeRenewal(redis: Redis, sessionId: string): Promise<boolean> {
  const taken = `session-cookie:${createHash('sha256').update(sessionId).digest('base64url')}`;
  const answer = redis.eval(TAKE_RENEWAL, 2, SESSION_PREFIX + sessionId, taken, RENEWAL_SECONDS);
  return (await within(answer)) === 1;
}

function leaveOut(res: Response, beginning: string): void {
  const header = res.getHeader('Set-Cookie');
  if (header === undefined) return;
  const others = [header].flat().filter((cookie) => !String(cookie).startsWith(beginning));
  if (others.length === 0) res.removeHeader('Set-Cookie');
  else res.setHeader('Set-Cookie', others.map(String));
}
