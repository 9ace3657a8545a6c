import type { Request } from 'express';
import type { SessionData } from 'express-session';
import type { SessionReplacement } from './session-replacement.ts';
import { writtenSessions } from './session-store.ts';
import { StoreUnavailableError } from './web-error.ts';

/**
 * Writes the session as this request knows it, which nothing else does; `changeSession` keeps what other tabs have
 * changed. A redirect has to wait for it: the browser may be back before the answer has ended.
 */
export function saveSession(req: Request): Promise<void> {
  return writtenSessions(req.sessionStore).write(req.sessionID, req.session);
}

/**
 * Reads the session anew, as another request may have changed it meanwhile.
 *
 * @returns false when there is none to read: it is new, or it has ended; it then stays as this request knows it
 * @throws StoreUnavailableError
 */
export function refreshSession(req: Request): Promise<boolean> {
  const known = req.session;
  return new Promise((resolve, reject) =>
    known.reload((error: unknown) => {
      if (error instanceof StoreUnavailableError) reject(error);
      else resolve(!error);
    }),
  );
}

/** Leaves the browser the cookie that it has by now: this request's session has been replaced by a newer one. */
export function disownSession(req: Request): void {
  (req as { session?: unknown }).session = undefined;
}

/**
 * Replaces the session by one with a new id, which holds this; the old id is worth nothing from then on.
 *
 * @param options.isKept whether the session has been read from the store, so that it has to be there still
 * @param options.logOutFollows whether a log-out that was under way with the old one ends the new one, too
 * @param options.pointer a name in Redis that leads to the new one's for a while
 * @returns false when it has ended meanwhile, as by a log-out; nothing is written then
 * @throws StoreUnavailableError; the browser keeps its cookie then, as the old session may still be there
 */
export async function replaceSession(
  req: Request,
  content: Partial<SessionData>,
  { isKept, logOutFollows, pointer }: Pick<SessionReplacement, 'isKept' | 'logOutFollows' | 'pointer'>,
): Promise<boolean> {
  const ended = { id: req.sessionID, isKept, logOutFollows };
  req.sessionStore.generate(req);
  Object.assign(req.session, content);
  let isReplaced = false;
  try {
    isReplaced = await writtenSessions(req.sessionStore).replace(ended, req.sessionID, req.session, pointer);
  } finally {
    if (!isReplaced) disownSession(req);
  }
  return isReplaced;
}

/**
 * Goes on with a session that another request of the same browser has made: its answer sets that cookie.
 *
 * @returns false when that session has ended
 */
export async function adoptSession(req: Request, id: string): Promise<boolean> {
  const store = req.sessionStore;
  const { promise, resolve, reject } = Promise.withResolvers<SessionData | null | undefined>();
  store.get(id, (error: unknown, data) => (error ? reject(error) : resolve(data)));
  const data = await promise;
  if (!data) return false;
  req.sessionID = id;
  store.createSession(req, data);
  return true;
}

/**
 * Ends the session, here and in the store, and one that an install has put in its place.
 *
 * @returns false when it had ended before: nothing is done then
 * @throws StoreUnavailableError
 */
export function endSession(req: Request): Promise<boolean> {
  disownSession(req);
  return writtenSessions(req.sessionStore).end(req.sessionID);
}
