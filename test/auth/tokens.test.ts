import { randomBytes } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { OAuthClient } from '../../src/auth/oauth-client.ts';
import { TokenCipher } from '../../src/auth/token-cipher.ts';
import { encryptTokens, Tokens, type TokensParts } from '../../src/auth/tokens.ts';
import { ServiceClock } from '../../src/service/headers.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { openStores } from '../../src/store/stores.ts';
import { installInstance } from '../support/install-instance.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTokenServer } from './token-server.ts';

const START = Date.UTC(2026, 2, 1, 12, 0, 0);
const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

const server = await startTokenServer();
const db = await openDatabase(`file:${tempDir()}/app.db`);
afterAll(() => db.destroy());
const { tokens: store, instances } = openStores(db);
const cipher = new TokenCipher([{ id: 'k1', key: randomBytes(32) }]);

let now: number;
let id: string;
let events: string[];
let tokens: Tokens;
let count = 0;

/** The tokens as another process has them, on the same database. */
function newProcess(parts: Partial<TokensParts> = {}): Tokens {
  const clock = new ServiceClock(() => now);
  const oauth = new OAuthClient({
    authUrl: server.url,
    clientId: 'app',
    clientSecret: 'secret',
    redirectUri: 'https://app.example/oauth/callback',
    clock,
  });
  const onRefresh: TokensParts['onRefresh'] = ({ outcome }) => events.push(outcome);
  return new Tokens({ oauth, store, cipher, clock, onRefresh, ...parts });
}

const install = () =>
  installInstance(db, { id }, now, {
    ...encryptTokens(cipher, id, 'at-0', 'rt-0'),
    access_expires_at: now + HOUR_MS,
    refresh_issued_at: now,
    refreshed_at: now,
  });

/** How many refreshes were sent. */
const asked = () => server.requests.length;
const text = async (rejected?: string) => (await tokens.accessToken(id, rejected)).text;
const row = async () => (await store.find(id)) ?? expect.unreachable();
const refreshToken = async () =>
  cipher.decrypt((await row()).refresh_token, { instanceId: id, column: 'refresh_token' });
const endBackoff = () =>
  db.updateTable('tokens').set({ refresh_not_before: 0 }).where('instance_id', '=', id).execute();

beforeEach(async () => {
  now = START;
  id = `ins_${++count}`;
  events = [];
  server.requests.length = 0;
  server.answerRefreshes();
  tokens = newProcess();
  await install();
});

describe('an access token', () => {
  it('is used until it is about to end, then renewed once for all who want it', async () => {
    expect(await text()).toBe('at-0');
    now += HOUR_MS - 2 * 60_000 - 1;
    expect(await text()).toBe('at-0');
    now += 1;
    expect(await Promise.all(Array.from({ length: 50 }, () => text()))).toEqual(Array(50).fill('at-1'));
    expect([asked(), await refreshToken(), events]).toEqual([1, 'rt-0', ['refreshed']]);
  });

  it('that the service rejects is renewed once; the next rejection says so for a minute', async () => {
    expect(await text('at-0')).toBe('at-1');
    await expect(text('at-1')).rejects.toMatchObject({
      remedy: 'wait',
      message: expect.stringContaining('401'),
    });
    expect([await text(), await text('at-0'), asked()]).toEqual(['at-1', 'at-1', 1]);
    await endBackoff();
    expect(await text('at-1')).toBe('at-2');
  });

  it('that ends is renewed also within the pause after a rejection', async () => {
    await text('at-0');
    now += HOUR_MS;
    expect(await text()).toBe('at-2');
  });

  it('is not to be had without tokens', async () => {
    await store.disconnect(id);
    await expect(text()).rejects.toMatchObject({ remedy: 'reauthorize' });
  });
});

describe('a refresh token', () => {
  it('is rotated when it is due, and then due in half a year', async () => {
    server.answerRefreshes({ rotating: true });
    await db.updateTable('tokens').set({ refresh_due_at: now }).where('instance_id', '=', id).execute();
    now += 2 * HOUR_MS;
    const due = (await tokens.dueForRotation()).filter(({ instance_id }) => instance_id === id);
    expect(due.length).toBe(1);
    for (const read of due) await tokens.rotate(read);
    expect([await refreshToken(), events]).toEqual(['rt-1', ['rotated']]);
    expect((await row()).refresh_due_at).toBeGreaterThan(now + 178 * DAY_MS);
  });

  it('that a rotation has left as it was stays due, and is tried again in an hour', async () => {
    await db.updateTable('tokens').set({ refresh_due_at: now }).where('instance_id', '=', id).execute();
    const isDue = async () => (await tokens.dueForRotation()).find(({ instance_id }) => instance_id === id);
    now += HOUR_MS;
    await tokens.rotate((await isDue()) ?? expect.unreachable());
    expect(await isDue()).toBeUndefined();
    now += HOUR_MS;
    expect(await isDue()).toBeDefined();
  });

  it('is over with its six months, in whatever form it is refused', async () => {
    server.answerJson(403, {});
    now += 100 * DAY_MS;
    await expect(text()).rejects.toMatchObject({ remedy: 'wait' });
    await endBackoff();
    now += 90 * DAY_MS;
    await expect(text()).rejects.toMatchObject({ remedy: 'reauthorize' });
  });
});

describe('trouble of the token route', () => {
  it.each([
    // With the sweep's half minute, two minutes after the last try.
    ['an outage', 503, 90_000],
    ['a refusal', 403, 5 * 60_000],
  ])('grows the pause from failure to failure: %s', async (_, status, longestMs) => {
    server.answerJson(status, {});
    now += HOUR_MS;
    const pauses: number[] = [];
    for (let n = 0; n < 12; n++) {
      await text().catch(() => undefined);
      pauses.push((await store.findForRefresh(id))?.pauseLeftMs ?? 0);
      await endBackoff();
    }
    expect(pauses.at(-1)).toBeGreaterThan(10 * (pauses[0] ?? 0));
    expect(Math.max(...pauses)).toBeLessThanOrEqual(longestMs);
    expect(Math.max(...pauses)).toBeGreaterThan(longestMs / 2 - 2_000);
    server.answerRefreshes();
    await text();
    expect((await row()).refresh_failures).toBe(0);
  });

  it.each([
    ['server_error', 503],
    ['refused', 403],
    ['bad_answer', 200],
  ])('is a failure of its kind for a run: %s', async (kind, status) => {
    server.answerJson(status, {});
    now += HOUR_MS;
    expect(await text().catch((error) => error)).toMatchObject({ kind });
  });

  it('that is about the app itself says so', async () => {
    server.answerJson(401, { error: 'invalid_client' });
    now += HOUR_MS;
    await expect(text()).rejects.toMatchObject({ remedy: 'give_up', kind: 'credentials' });
    expect((await instances.find(id))?.status).toBe('active');
  });
});

it('begins no refresh when the process ends, and waits for the one under way', async () => {
  now += HOUR_MS;
  const { asked: isAsked, answer } = server.holdAnswer();
  const wanted = text();
  await isAsked;
  const closed = tokens.close();
  answer(200, { access_token: 'at-last' });
  await closed;
  expect(await wanted).toBe('at-last');
  now += HOUR_MS;
  await expect(text()).rejects.toThrow('being stopped');
});
