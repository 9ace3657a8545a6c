import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Request } from 'express';
import type { SessionData } from 'express-session';
import type { Redis } from 'ioredis';
import { LONGEST_INSTALL_MS } from '../install/longest-install.ts';
import { RedisLock } from '../tokens/lock.ts';
import { hasEnded, within } from './redis-session-client.ts';
import { type Flash, SESSION_PREFIX, sentSessionId } from './session.ts';
import { refreshSession, saveSession } from './session-actions.ts';

/** How long a change of a session may take, in milliseconds. */
const CHANGE_MS = 5_000;

/** For what a session has to be told of an install, in milliseconds: its changes wait for those of other tabs. */
const ENTER_MS = 30_000;

/**
 * How long one callback of a session may keep the next one waiting, in milliseconds; a few seconds if its process dies.
 * It outlasts any install: a second click that came in before the end of the first would take its state for spent.
 */
const TURN_MS = LONGEST_INSTALL_MS + ENTER_MS;

/** How long a request may take that waits for its turn, in milliseconds: as long as the lock waits, then its own turn. */
export const LONGEST_REQUEST_MS = 3 * TURN_MS;

/** The parameter of an address that a browser has been sent to again: how often, and which session's cookie it came with. */
const AGAIN = 'again';

/**
 * How long a browser waits before it is sent again, by how often it was with this cookie, in milliseconds: another tab's
 * answer with the newer one may still be on its way. After these it counts as one that has no other.
 */
const AGAIN_AFTER_MS = [0, 250, 500, 1_000];

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** Changes of one session follow each other: two tabs must not overwrite what the other has put there. */
export function inChangeTurn<Result>(
  redis: Redis,
  sessionId: string,
  work: () => Promise<Result>,
): Promise<Result> {
  return new RedisLock(redis).hold(`install:{${digest(sessionId)}}:change`, CHANGE_MS, work);
}

/**
 * What gives a session a new id comes one after the other: who is second would take the first one's for a log-out.
 * The connection may be silent for as long as that takes: it must end with a page, whatever the page says.
 */
export function inReplacementTurn<Result>(
  redis: Redis,
  req: Request,
  work: () => Promise<Result>,
): Promise<Result> {
  req.setTimeout(LONGEST_REQUEST_MS);
  return new RedisLock(redis).hold(`install:{${digest(req.sessionID)}}:turn`, TURN_MS, work);
}

/**
 * Changes the session as it is by now, which may be another than this request has read, and writes it.
 *
 * @returns false when there is none any more: nothing is changed then
 * @throws StoreUnavailableError
 */
export function changeSession(
  redis: Redis,
  req: Request,
  change: (session: Partial<SessionData>) => void,
): Promise<boolean> {
  const changed = inChangeTurn(redis, req.sessionID, async () => {
    if (!(await refreshSession(req))) return false;
    change(req.session);
    await saveSession(req);
    return true;
  });
  return within(changed, CHANGE_MS);
}

/** The message that waits for the next page that somebody sees, which takes it away. */
export async function takeFlash(redis: Redis, req: Request): Promise<Flash | undefined> {
  if (!req.session.flash || req.method === 'HEAD') return undefined;
  let flash: Flash | undefined;
  await changeSession(redis, req, (session) => {
    flash = session.flash;
    delete session.flash;
  });
  return flash;
}

/**
 * Whether the browser has sent the cookie of a session that has ended since, in the last twenty minutes. It may have
 * a newer one by now, or is about to be given it: whoever is at ending the session is waited for. A browser that was
 * sent to `addressToAskAgain` a few times and still has that cookie has no other: it counts as new, or it would be sent
 * for ever.
 *
 * @throws StoreUnavailableError
 */
export async function sentEndedSession(redis: Redis, req: Request): Promise<boolean> {
  const id = sentSessionId(req);
  if (id === undefined || id === req.sessionID) return false;
  const waitMs = AGAIN_AFTER_MS[timesSent(req, id)];
  if (waitMs === undefined || !(await hasEnded(redis, SESSION_PREFIX + id))) return false;
  await inChangeTurn(redis, id, async () => {});
  await sleep(waitMs);
  return true;
}

/** How often the browser was sent to where it is with the cookie of this session. */
function timesSent(req: Request, id: string): number {
  const [, times, mark] = /^(\d)\.(.*)$/.exec(String(req.query[AGAIN])) ?? [];
  return mark === digest(`again ${id}`) ? Number(times) : 0;
}

/** Where a browser asks the same again, with the cookie that it has by then. */
export function addressToAskAgain(req: Request, path: string, query = new URLSearchParams()): string {
  const id = sentSessionId(req) ?? '';
  query.set(AGAIN, `${timesSent(req, id) + 1}.${digest(`again ${id}`)}`);
  return `${path}?${query}`;
}
