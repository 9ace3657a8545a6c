import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, expect, test, vi } from 'vitest';
import { rotateTokens } from '../../jobs/rotate-tokens.ts';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { ServiceTime } from '../../src/client/service-time.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { Vault } from '../../src/tokens/vault.ts';
import { tempDir } from '../support/temp-dir.ts';
import { testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { tokenProcess } from '../tokens/token-process.ts';
import { startTokenServer } from '../tokens/token-server.ts';

vi.setConfig({ testTimeout: 120_000 });

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
const LIFETIME_MS = 180 * DAY_MS;
const MANY = 1_000;
const FEWER = 100;
const START = Date.UTC(2026, 2, 1, 12, 0, 0);

/** The service's time, and ours, which stand still unless the test moves them. */
let now = START;
let isDown = false;

// A service that reads "6 months" as short as can be, which the sandbox does not: a refresh token lives for 180 days, and
// is replaced in the last 24 hours of them (Authentication, 8). One reads `<instance>.<number>.<end>`.
const server = await startTokenServer();
const renewals: { instance: string; at: number; leftMs: number }[] = [];
let refused = 0;
const newToken = (instance: string, number: number) => `${instance}.${number}.${now + LIFETIME_MS}`;
server.answer = (response) => {
  response.sendDate = false;
  response.setHeader('date', new Date(now).toUTCString());
  const { method, body } = server.requests.at(-1) ?? {};
  if (method === 'HEAD' || isDown) return response.writeHead(isDown ? 503 : 404).end();
  const sent = new URLSearchParams(body).get('refresh_token') ?? '';
  const [instance = '', number = '', end = ''] = sent.split('.');
  const leftMs = Number(end) - now;
  if (leftMs <= 0) refused++;
  if (leftMs <= 0) return response.writeHead(400).end(JSON.stringify({ error: 'invalid_grant' }));
  const rotates = leftMs <= DAY_MS;
  if (rotates) renewals.push({ instance, at: now, leftMs });
  const refresh_token = rotates ? newToken(instance, Number(number) + 1) : sent;
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify({ access_token: `at-${now}`, refresh_token, token_type: 'Bearer' }));
};

const redis = new Redis((await startTestRedis()).url);
const db = await openDatabase(`file:${tempDir()}/app.db`);
afterAll(async () => {
  redis.disconnect();
  await db.destroy();
});
const clock = new ServiceClock(() => now);
const parts = {
  db,
  redis,
  vault: new Vault([{ id: 'k1', key: randomBytes(32) }]),
  clock,
  authUrl: server.url,
};
const { tokens } = tokenProcess(parts);
const time = new ServiceTime(clock, server.url, 0);
const { logger } = testLogger();
const never = new AbortController().signal;

/** Sweeps until a moment, at a distance of so many milliseconds. @returns how many requests each sweep made */
async function sweepUntil(end: number, everyMs: number): Promise<number[]> {
  const sizes: number[] = [];
  for (; now < end; now += everyMs) {
    // Meanwhile every pause is over.
    await redis.flushall();
    const before = server.requests.length;
    await rotateTokens({ tokens, time }, logger, never, 60_000);
    sizes.push(server.requests.slice(before).filter(({ method }) => method === 'POST').length);
  }
  return sizes;
}

/** Takes the others away: what is told about a thousand holds for fewer, too, and in less time. */
async function keepOnly(many: number): Promise<void> {
  const others = Array.from({ length: MANY - many }, (_, index) => `ins_${many + index}`);
  await db.deleteFrom('tokens').where('instance_id', 'in', others).execute();
}

/** Leads to just before the first of them is due. */
function toRotation(issuedAt: number): void {
  now = issuedAt + LIFETIME_MS - DAY_MS - HOUR_MS;
}

// All of them within one hour.
for (let number = 0; number < MANY; number++) {
  now = START + Math.floor((number * HOUR_MS) / MANY);
  const id = `ins_${number}`;
  const lives = { grantedAt: now, accessExpiresAt: now + HOUR_MS };
  const grant = { accessToken: 'at', refreshToken: newToken(id, 0), ...lives };
  await tokens.install({ id, companyId: id, name: id, installedAt: now }, grant);
}

test('a thousand grants that are due in the same hour are renewed spread out, each once and half a day before its end', async () => {
  toRotation(START);
  const sizes = await sweepUntil(START + LIFETIME_MS, HOUR_MS / 2);
  expect(refused).toBe(0);
  expect(new Set(renewals.map(({ instance }) => instance)).size).toBe(MANY);
  expect(renewals.length).toBe(MANY);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(MANY);
  // Twelve hours, 24 sweeps: about 42 each.
  expect(Math.max(...sizes)).toBeLessThan((MANY / 24) * 2);
  expect(sizes.filter((size) => size > 0).length).toBeGreaterThanOrEqual(24);
  expect(Math.min(...renewals.map(({ leftMs }) => leftMs))).toBeGreaterThan(11 * HOUR_MS);
});

test('when the token route is down for most of that time, none is missed either', async () => {
  const issuedAt = Math.min(...renewals.map(({ at }) => at));
  renewals.length = 0;
  await keepOnly(FEWER);
  toRotation(issuedAt);
  isDown = true;
  const downUntil = issuedAt + LIFETIME_MS - 4 * HOUR_MS;
  expect((await sweepUntil(downUntil, 10 * HOUR_MS)).at(-1)).toBeGreaterThan(FEWER / 2);
  expect(renewals).toEqual([]);
  isDown = false;
  now = downUntil;
  await sweepUntil(issuedAt + LIFETIME_MS + 12 * HOUR_MS, HOUR_MS);
  expect(refused).toBe(0);
  expect(new Set(renewals.map(({ instance }) => instance)).size).toBe(FEWER);
  expect(renewals.length).toBe(FEWER);
});

test('a token route that does not answer holds up no sweep for long, and the next one comes to others', async () => {
  const issuedAt = Math.min(...renewals.map(({ at }) => at));
  now = issuedAt + LIFETIME_MS - HOUR_MS;
  const { tokens: hurried } = tokenProcess({ ...parts, timeoutSeconds: 0.1 });
  server.answer = (response) => {
    response.sendDate = false;
    if (server.requests.at(-1)?.method === 'HEAD') response.writeHead(404).end();
  };
  const asked: string[][] = [];
  for (let sweep = 0; sweep < 2; sweep++) {
    const before = server.requests.length;
    await rotateTokens({ tokens: hurried, time }, logger, never, 250);
    const bodies = server.requests.slice(before).filter(({ method }) => method === 'POST');
    asked.push(bodies.map(({ body }) => new URLSearchParams(body).get('refresh_token') ?? ''));
  }
  const [first = [], second = []] = asked;
  expect(first.length).toBeGreaterThan(0);
  expect(first.length).toBeLessThan(FEWER / 2);
  expect(second.filter((token) => !first.includes(token)).length).toBeGreaterThan(0);
});
