import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { Redis } from 'ioredis';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { addMonths } from '../../src/contract/lifetimes.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { Vault } from '../../src/tokens/vault.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { tokenProcess } from './token-process.ts';
import { startTokenServer } from './token-server.ts';

const START = Date.UTC(2026, 2, 1, 12, 0, 0);
const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
/** Six months, and a day for whoever counts otherwise. */
const SURELY_OVER = addMonths(START, 6) + DAY_MS;

const server = await startTokenServer();
const redis = new Redis((await startTestRedis()).url);
const db = await openDatabase(`file:${tempDir()}/app.db`);
afterAll(async () => {
  redis.disconnect();
  await db.destroy();
});

let now: number;
let id: string;
let count = 0;
const clock = new ServiceClock(() => now);
const vault = new Vault([{ id: 'k1', key: randomBytes(32) }]);
const { tokens, instances } = tokenProcess({ db, redis, vault, clock, authUrl: server.url });

beforeEach(async () => {
  now = START;
  id = `ins_${++count}`;
  server.requests.length = 0;
  const grant = { accessToken: 'at-0', refreshToken: 'rt-0', grantedAt: now, accessExpiresAt: now + HOUR_MS };
  await tokens.install({ id, companyId: `cmp_${count}`, name: 'Acme', installedAt: Date.now() }, grant);
});

/** What a rotation fails on at a moment; no pause is under way. */
async function failureAt(moment: number): Promise<object> {
  now = moment;
  await redis.flushall();
  const failure = tokens.rotate(id).then(() => ({ remedy: 'none' }));
  return failure.catch((error: object) => error);
}

const answers = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  function answer(response: ServerResponse): void {
    response.sendDate = false;
    const type = { 'content-type': 'application/json' };
    response.writeHead(status, { ...type, ...headers }).end(JSON.stringify(body));
  };

const error = (status: number) => ({ _error: { status, title: 'No', message: 'No such refresh token.' } });
const challenge = (scheme: string) => ({ 'www-authenticate': `${scheme} realm="service"` });

test.each<[string, (response: ServerResponse) => void]>([
  ['the service’s common error, 400', answers(400, error(400))],
  ['the service’s common error, 401', answers(401, error(401))],
  ['the service’s common error, 403', answers(403, error(403))],
  ['a challenge for a token', answers(401, error(401), challenge('Bearer'))],
  ['a challenge for the credentials', answers(401, error(401), challenge('Basic'))],
  ['an error of its own', answers(400, { error: 'token_expired' })],
  ['success without a grant', answers(200, { ok: false, error: 'invalid_refresh_token' })],
  ['410 and nothing else', answers(410, undefined)],
])(
  'a refusal as %s ends the grant when the refresh token’s six months are over, and not before',
  async (_form, answer) => {
    server.answer = answer;
    expect(await failureAt(SURELY_OVER)).not.toMatchObject({ remedy: 'reauthorize' });
    expect((await instances.find(id))?.status).toBe('active');

    expect(await failureAt(SURELY_OVER + 1)).toMatchObject({ remedy: 'reauthorize' });
    const instance = await instances.find(id);
    expect(instance?.status).toBe('needs_reauthorization');
    expect(instance?.notice).toMatch(/six months are over.*Authorize the app again/);

    const asked = server.requests.length;
    expect(await failureAt(SURELY_OVER + HOUR_MS)).toMatchObject({ remedy: 'reauthorize' });
    expect(server.requests.length).toBe(asked);
  },
);

test.each<[string, (response: ServerResponse) => void]>([
  ['408', answers(408, error(408))],
  ['429', answers(429, error(429))],
  ['503', answers(503, error(503))],
  ['a redirect', (response) => response.writeHead(302, { location: '/elsewhere' }).end()],
  ['a connection that breaks', (response) => response.destroy()],
])('%s ends no grant, however old', async (_answer, answer) => {
  server.answer = answer;
  expect(await failureAt(SURELY_OVER + DAY_MS)).toMatchObject({ remedy: 'wait' });
  expect((await instances.find(id))?.status).toBe('active');
});

test('a refusal of the app itself ends no grant, however old', async () => {
  server.answer = answers(401, { error: 'invalid_client' });
  expect(await failureAt(SURELY_OVER + DAY_MS)).toMatchObject({ remedy: 'give_up' });
  expect((await instances.find(id))?.status).toBe('active');
});

test('a refresh token that was good after its six months has an end that nobody knows', async () => {
  server.answerRefreshes();
  expect(await failureAt(SURELY_OVER + DAY_MS)).toEqual({ remedy: 'none' });
  server.answer = answers(403, error(403));
  expect(await failureAt(SURELY_OVER + 2 * DAY_MS)).toMatchObject({ remedy: 'wait', status: 403 });
  expect((await instances.find(id))?.status).toBe('active');
});
