import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { Vault } from '../../src/tokens/vault.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { accessTokenFrom } from '../tokens/access-token.ts';
import { tokenProcess } from '../tokens/token-process.ts';
import { startTokenServer } from '../tokens/token-server.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const START = Date.UTC(2026, 2, 1, 12, 0, 0);
const HOURS = 3;
const STEP_AT_MINUTE = 65;

const server = await startTokenServer();
const redis = new Redis((await startTestRedis()).url);
const db = await openDatabase(`file:${tempDir()}/app.db`);
const vault = new Vault([{ id: 'k1', key: randomBytes(32) }]);
afterAll(async () => {
  redis.disconnect();
  await db.destroy();
});

/** How a service may tell the end of an access token, given in milliseconds since 1970. */
const FORMS: Record<string, (end: number) => object> = {
  'a number': (end) => ({ expires_at: end / 1_000 }),
  'a numeric string': (end) => ({ expires_at: String(end / 1_000) }),
  'an ISO date': (end) => ({ expires_at: new Date(end).toISOString() }),
  nothing: () => ({}),
  nonsense: () => ({ expires_at: 'in a while' }),
};

/** How our clock differs from the service's, in minutes: first, and from the middle on. */
const CLOCKS: [before: number, after: number][] = [
  [0, 0],
  [10, 10],
  [-10, -10],
  [0, 10],
  [0, -10],
  [-10, 10],
  [10, -10],
];

let count = 0;

/**
 * Lets hours pass in which every other minute a request is sent, with the token that the app has for it.
 *
 * @returns when tokens were asked for, and when the API rejected one, in minutes
 */
async function passHours(
  form: (end: number) => object,
  [before, after]: [number, number],
  tellsTime: boolean,
) {
  let now = START;
  let wrongBy = before * MINUTE_MS;
  const clock = new ServiceClock(
    () => now + wrongBy,
    () => now,
  );
  const tellTime = () => (tellsTime ? { date: new Date(now).toUTCString() } : undefined);
  const refreshes: number[] = [];
  const rejections: number[] = [];
  const minute = () => (now - START) / MINUTE_MS;
  // The service: an access token carries its end, and is good until then (Authentication, 7).
  const issue = () => `at-${now + HOUR_MS}`;
  const isGood = (token: string) => now < Number(token.split('-')[1]);
  server.answer = (response) => {
    refreshes.push(minute());
    const body = { access_token: issue(), token_type: 'Bearer', ...form(now + HOUR_MS) };
    response.sendDate = false;
    response.writeHead(200, { 'content-type': 'application/json', ...tellTime() }).end(JSON.stringify(body));
  };

  const { tokens } = tokenProcess({ db, redis, vault, clock, authUrl: server.url });
  const id = `ins_${++count}`;
  const grantedAt = clock.now();
  const grant = { accessToken: issue(), refreshToken: 'rt', grantedAt, accessExpiresAt: grantedAt + HOUR_MS };
  await tokens.install({ id, companyId: id, name: 'Acme', installedAt: now }, grant);
  for (; minute() < HOURS * 60; now += 2 * MINUTE_MS) {
    if (minute() > STEP_AT_MINUTE) wrongBy = after * MINUTE_MS;
    const token = await accessTokenFrom(tokens, id);
    const wasGood = isGood(token);
    // The API's answer tells the time, too.
    clock.observe(tellTime()?.date);
    if (wasGood) continue;
    rejections.push(minute());
    expect(isGood(await accessTokenFrom(tokens, id, token))).toBe(true);
  }
  return { refreshes, rejections };
}

test.each(Object.entries(FORMS))(
  'expires_at as %s: no refresh too many and none too few, with a clock that is minutes wrong, or is set in between',
  async (_name, form) => {
    for (const tellsTime of [true, false]) {
      for (const clocks of CLOCKS) {
        const { refreshes, rejections } = await passHours(form, clocks, tellsTime);
        const what = JSON.stringify({ tellsTime, clocks, refreshes, rejections });
        // One in each hour; a clock that is set may cost one, and with it one request that is rejected.
        expect(refreshes.length, what).toBeGreaterThanOrEqual(HOURS - 1);
        expect(refreshes.length, what).toBeLessThanOrEqual(HOURS + 1);
        expect(rejections.length, what).toBeLessThanOrEqual(1);
      }
    }
  },
);
