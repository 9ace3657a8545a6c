import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import type { Redis } from 'ioredis';
import { clientAddress } from './client-address.ts';
import { RateLimit, within } from './rate-limit.ts';
import { WebError } from './web-error.ts';
import { LIMIT_WINDOW_MS, WEB_LIMITS, type WebLimits } from './web-limits.ts';

/** How long an address that got in is not held up by what others try, in seconds. */
const KNOWN_SECONDS = 24 * 60 * 60;

/** The password of a Basic header (RFC 7617), whatever the user's name. */
function passwordOf(header: string | undefined): string | undefined {
  const encoded = /^basic ([\w+/=-]+)$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon === -1 ? undefined : text.slice(colon + 1);
}

/** Compares by digests: a comparison of the texts would end sooner the sooner they differ. */
function secretMatcher(secret: string): (given: string) => boolean {
  const key = randomBytes(32);
  const digest = (text: string) => createHmac('sha256', key).update(text).digest();
  const expected = digest(secret);
  return (given) => timingSafeEqual(digest(given), expected);
}

/**
 * Asks for the operator's password by HTTP Basic, with any user name. An address may be wrong ten times a
 * minute, all together a hundred times; after that even the right password waits. Redis counts, for all processes.
 * Addresses that got in within a day are not held up by what others try, or anybody could lock the operator out.
 */
export function operatorGate(
  password: string,
  redis: Redis,
  limits: Partial<WebLimits> = {},
): RequestHandler {
  const isRight = secretMatcher(password);
  const { operator, operatorInAll } = { ...WEB_LIMITS, ...limits };
  const windowMs = LIMIT_WINDOW_MS;
  const ofAddress = new RateLimit(redis, { name: 'operator', max: operator, windowMs });
  const ofAll = new RateLimit(redis, { name: 'operator-in-all', max: operatorInAll, windowMs });

  return async (req, _res, next) => {
    const given = passwordOf(req.get('authorization'));
    if (given === undefined) throw passwordWanted();
    const address = clientAddress(req);
    const known = `operator-known:${address}`;
    await ofAddress.take(address);
    const isKnown = (await within(redis.exists(known))) === 1;
    if (!isKnown) await ofAll.take();
    if (!isRight(given)) throw passwordWanted();
    await ofAddress.giveBack(address);
    if (!isKnown) await ofAll.giveBack();
    await within(redis.set(known, '1', 'EX', KNOWN_SECONDS));
    next();
  };
}

/** The answer that makes a browser ask for the password. */
function passwordWanted(): WebError {
  return new WebError(401, 'For the operator', 'This page needs the operator’s password.', {
    headers: { 'WWW-Authenticate': 'Basic realm="Operations", charset="UTF-8"' },
  });
}
