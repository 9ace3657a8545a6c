import { createHash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import type { Redis } from 'ioredis';
import { clientAddress, createCounter, RateLimit, WEB_LIMITS, type WebLimits } from './rate-limit.ts';
import { WebError } from './web-error.ts';

/** For so long, wrong passwords of others do not hold up an address that got in. */
const KNOWN_SECONDS = 24 * 60 * 60;

/** `timingSafeEqual` needs equal lengths. */
const digest = (text: string) => createHash('sha256').update(text).digest();

/** The password of a Basic header (RFC 7617), whatever the user's name. */
function passwordOf(header = ''): string | undefined {
  const encoded = /^basic ([\w+/=-]+)$/i.exec(header)?.[1] ?? '';
  return /:(.*)$/s.exec(Buffer.from(encoded, 'base64').toString('utf8'))?.[1];
}

/**
 * Asks for the operator's password by HTTP Basic. One address may be wrong ten times a minute, all addresses together a
 * hundred times; then even the right password waits. The second limit does not hold for an address that got in within a
 * day, or anybody could lock the operator out.
 */
export function operatorGate(
  password: string,
  redis: Redis,
  limits: Partial<WebLimits> = {},
): RequestHandler {
  const expected = digest(password);
  const { operator, operatorInAll } = { ...WEB_LIMITS, ...limits };
  const ofAddress = new RateLimit(redis, 'operator', operator);
  const ofAll = new RateLimit(redis, 'operator-in-all', operatorInAll);
  const known = createCounter(redis, 'operator-known', 1, KNOWN_SECONDS);

  return async (req, _res, next) => {
    const given = passwordOf(req.get('authorization'));
    if (given === undefined) throw passwordWanted();
    const address = clientAddress(req);
    await ofAddress.take(address);
    const isKnown = (await known.get(address)) !== null;
    if (!isKnown) await ofAll.take();
    if (!timingSafeEqual(digest(given), expected)) throw passwordWanted();
    await Promise.all([
      ofAddress.giveBack(address),
      isKnown ? undefined : ofAll.giveBack(),
      known.set(address, 1, KNOWN_SECONDS),
    ]);
    next();
  };
}

function passwordWanted(): WebError {
  return new WebError(401, 'For the operator', 'This page needs the operator’s password.', {
    headers: { 'WWW-Authenticate': 'Basic realm="Operations", charset="UTF-8"' },
  });
}
