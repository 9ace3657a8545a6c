import { createHash } from 'node:crypto';
import { csrfSync } from 'csrf-sync';
import express, { type Request, type RequestHandler } from 'express';
import type { Redis } from 'ioredis';
import { refreshSession } from './session-actions.ts';
import { changeSession } from './session-changes.ts';

/** Name of the hidden field that each form carries. */
const CSRF_FIELD = '_csrf';

const protection = csrfSync({
  size: 32,
  getTokenFromRequest: (req: Request): string | undefined => {
    const value: unknown = (req.body as Record<string, unknown> | undefined)?.[CSRF_FIELD];
    return typeof value === 'string' ? value : undefined;
  },
});

/** What {@link checkedForm} throws for a form that comes without the session's token, as from before another tab's install. */
export const formTooOld: Error = protection.invalidCsrfTokenError;

/** Characters of a mark: nobody finds a token for one, nor do two tokens have the same. */
const MARK_LENGTH = 16;

/** Larger than any form of this app, in bytes. */
const MAX_FORM_BYTES = 10 * 1_024;

const readForm = express.urlencoded({ extended: false, limit: MAX_FORM_BYTES, parameterLimit: 20 });

/** The end of a form may come long after the session was read, and that may have ended meanwhile. */
const refuseOfEndedSession: RequestHandler = async (req, _res, next) => {
  if (!(await refreshSession(req))) throw formTooOld;
  next();
};

/** Reads a small form (413 otherwise), and refuses one without the session's token (`EBADCSRFTOKEN`, 403). */
export const checkedForm: RequestHandler[] = [
  readForm,
  refuseOfEndedSession,
  protection.csrfSynchronisedProtection,
];

/** The same for the log-out, which has to go on with a session that an install has replaced while the form came. */
export const checkedLogOut: RequestHandler[] = [readForm, protection.csrfSynchronisedProtection];

/** The session's token for a form, made on first use: of two pages at once, the later takes what the first has made. */
export async function csrfToken(redis: Redis, req: Request): Promise<string> {
  if (protection.getTokenFromState(req) === undefined) {
    await changeSession(redis, req, () => protection.generateToken(req));
  }
  return protection.generateToken(req);
}

/**
 * What tells the session's token from another one without being of use to anybody: a page that carries another mark than
 * its browser's session has forms that are refused.
 */
export function formMark(req: Request): string {
  const token = protection.getTokenFromState(req);
  if (typeof token !== 'string') return 'none';
  return createHash('sha256').update(`form mark ${token}`).digest('base64url').slice(0, MARK_LENGTH);
}
