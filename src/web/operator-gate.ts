import { createHash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import type { Redis } from 'ioredis';
import { clientAddress, createCounter, RateLimit, WEB_LIMITS, type WebLimits } from './rate-limit.ts';
import { WebError } from './web-error.ts';

/** For so long, wrong passwords of others do not hold up an address that got in. */
const KNOWN_SECONDS = 24 * 60 * 60;

/** `timingSafeEqual` needs equal lengths. */
const digest = (text: string) => createHash('sha256').update(text).digest();

const LONGEST_NAME = 60;

/** Name and password of a Basic header (RFC 7617). The name is anybody's word: it is noted, and opens nothing. */
function loginOf(header = ''): { name: string; password: string } | undefined {
  const encoded = /^basic ([\w+/=-]+)$/i.exec(header)?.[1] ?? '';
  const [, name, password] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString('utf8')) ?? [];
  if (name === undefined || password === undefined) return undefined;
  return {
    name: name
      .replaceAll(/\p{Cc}/gu, '')
      .trim()
      .slice(0, LONGEST_NAME),
    password,
  };
}

/**
 * Asks for the operator's password by HTTP Basic. One address may be wrong ten times a minute, all addresses together a
 * hundred times; then even the right password waits. The second limit does not hold for an address that got in within a
 * day, or anybody could lock the operator out. `res.locals.operator` is who it is, by the login's name.
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

  return async (req, res, next) => {
    const login = loginOf(req.get('authorization'));
    if (login === undefined) throw passwordWanted();
    const address = clientAddress(req);
    await ofAddress.take(address);
    const isKnown = (await known.get(address)) !== null;
    if (!isKnown) await ofAll.take();
    if (!timingSafeEqual(digest(login.password), expected)) throw passwordWanted();
    await Promise.all([
      ofAddress.giveBack(address),
      isKnown ? undefined : ofAll.giveBack(),
      known.set(address, 1, KNOWN_SECONDS),
    ]);
    res.locals.operator = `operator ${login.name}`.trim();
    next();
  };
}

function passwordWanted(): WebError {
  return new WebError(401, 'For the operator', 'This page needs the operator’s password.', {
    headers: { 'WWW-Authenticate': 'Basic realm="Operations", charset="UTF-8"' },
  });
}
