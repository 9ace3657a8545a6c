import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import { WebError } from './web-error.ts';

const WINDOW_MS = 60_000;
const MAX_FAILURES = 10;
/** Addresses that are counted at a time; an attacker with more of them meets an empty table, not a full memory. */
const MAX_ADDRESSES = 10_000;

interface Failures {
  since: number;
  count: number;
}

/** The password of a Basic header (RFC 7617), whatever the user's name. */
function passwordOf(header: string | undefined): string | undefined {
  const encoded = /^basic ([\w+/=-]+)$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon === -1 ? undefined : text.slice(colon + 1);
}

/**
 * Lets in who knows the operator's password, by HTTP Basic with any user. An address may be wrong ten times a
 * minute; after that even the right password waits. The count is this process' own: with several processes an
 * attacker has that many times ten tries, which a long password outlasts.
 *
 * @param now milliseconds since 1970
 */
export function operatorGate(password: string, now: () => number): RequestHandler {
  const key = randomBytes(32);
  const digest = (text: string) => createHmac('sha256', key).update(text).digest();
  const expected = digest(password);
  const failures = new Map<string, Failures>();

  function failuresOf(address: string): Failures {
    const known = failures.get(address);
    if (known && now() - known.since < WINDOW_MS) return known;
    if (failures.size >= MAX_ADDRESSES) failures.clear();
    const fresh = { since: now(), count: 0 };
    failures.set(address, fresh);
    return fresh;
  }

  return (req, res, next) => {
    const given = passwordOf(req.get('authorization'));
    const record = failuresOf(req.ip ?? '');
    if (given !== undefined && record.count >= MAX_FAILURES) {
      throw new WebError(429, 'Too many attempts', 'Wait a minute before you try again.', {
        retryAfterSeconds: Math.ceil((record.since + WINDOW_MS - now()) / 1_000),
      });
    }
    // Equal lengths whatever was given, so that the time tells nothing about the password.
    if (given !== undefined && timingSafeEqual(digest(given), expected)) {
      failures.delete(req.ip ?? '');
      return next();
    }
    if (given !== undefined) record.count += 1;
    res.setHeader('WWW-Authenticate', 'Basic realm="Operations", charset="UTF-8"');
    throw new WebError(401, 'For the operator', 'This page needs the operator’s password.');
  };
}
