import { csrfSync } from 'csrf-sync';
import type { Request, RequestHandler } from 'express';

/** Name of the hidden field that each form carries. */
const CSRF_FIELD = '_csrf';

const protection = csrfSync({
  size: 32,
  getTokenFromRequest: (req: Request): string | undefined => {
    const value: unknown = (req.body as Record<string, unknown> | undefined)?.[CSRF_FIELD];
    return typeof value === 'string' ? value : undefined;
  },
});

/** Refuses a form that does not carry the session's token (`EBADCSRFTOKEN`, 403). Comes after the body's parser. */
export const checkCsrf: RequestHandler = protection.csrfSynchronisedProtection;

/** The session's token for a form, made on first use. */
export function csrfToken(req: Request): string {
  return protection.generateToken(req);
}
