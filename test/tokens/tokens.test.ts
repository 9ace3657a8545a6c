import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/store/open-database.ts';
import { TokenStore } from '../../src/store/tokens.ts';
import { waitFor } from '../support/wait-for.ts';
import { accessTokenFrom } from './access-token.ts';
import { ANSWERED, DAY_MS, HOUR_MS, setUpTokens } from './tokens-setup.ts';

const setup = await setUpTokens();
const { databaseUrl, instances, redis, server, store, vault } = setup;

test('a token that is good is used as it is, and nothing is asked', async () => {
  expect(await setup.accessToken()).toBe('at-0');
  setup.now += HOUR_MS - 2 * 60_000 - 1;
  expect(await setup.accessToken()).toBe('at-0');
  expect(server.requests).toEqual([]);
});

test('a token that is held for several requests says when it is to be asked for anew', async () => {
  server.answerRefreshes();
  const held = await setup.tokens.heldToken(setup.id, undefined, 'contacts');
  expect(held.text).toBe('at-0');
  expect(held.isDue()).toBe(false);
  setup.now += HOUR_MS - 2 * 60_000;
  expect(held.isDue()).toBe(true);
  expect((await setup.tokens.heldToken(setup.id, undefined, 'contacts')).text).toBe('at-1');
  expect((await setup.tokens.heldToken(setup.id, undefined, 'contacts')).isDue()).toBe(false);
});

test('one that is about to end is renewed first; the refresh token stays', async () => {
  server.answerRefreshes();
  setup.now += HOUR_MS - 2 * 60_000;
  expect(await setup.accessToken()).toBe('at-1');
  expect(await setup.stored()).toMatchObject({
    access: 'at-1',
    refresh: 'rt-0',
    access_expires_at: setup.now + HOUR_MS,
    refresh_issued_at: setup.start,
    refreshes: 1,
    rotations: 0,
  });
  expect(setup.events).toEqual(['refreshed']);
});

test('one that was rejected is renewed once; whoever comes later with it gets the new one', async () => {
  server.answerRefreshes();
  expect(await setup.accessToken('at-0')).toBe('at-1');
  expect(await setup.accessToken('at-0')).toBe('at-1');
  expect(server.requests.length).toBe(1);
});

test('an answer without a refresh token leaves the old one in force', async () => {
  server.answerRefreshes({ withoutRefreshToken: true });
  await setup.tokens.rotate(setup.id);
  expect(await setup.stored()).toMatchObject({ access: 'at-1', refresh: 'rt-0', rotations: 0 });
});

test('a new refresh token starts a new period', async () => {
  server.answerRefreshes({ rotating: true });
  setup.now += 180 * DAY_MS;
  await setup.tokens.rotate(setup.id);
  const row = await setup.stored();
  expect(row).toMatchObject({ refresh: 'rt-1', refresh_issued_at: setup.now, rotations: 1 });
  expect(row.refresh_due_at).toBeGreaterThan(setup.now + 178 * DAY_MS);
  expect(setup.events).toEqual(['rotated']);
});

test('a new refresh token is durable before anybody uses the new access token', async () => {
  server.answerRefreshes({ rotating: true });
  const elsewhere = await openDatabase(databaseUrl);
  const accessToken = await setup.accessToken('at-0');
  const row = await new TokenStore(elsewhere).find(setup.id);
  await elsewhere.destroy();
  expect(accessToken).toBe('at-1');
  expect(vault.open(row?.refresh_token ?? '', { instanceId: setup.id, purpose: 'refresh_token' })).toBe(
    'rt-1',
  );
});

test('callers in one process share a refresh, processes take turns and look first', async () => {
  const held = server.holdAnswer();
  const sibling = setup.newProcess();
  const asking = [setup.tokens, setup.tokens, sibling, sibling].map((one) =>
    accessTokenFrom(one, setup.id, 'at-0'),
  );
  await held.asked;
  await turn();
  held.answer(200, ANSWERED);
  expect(await Promise.all(asking)).toEqual(Array(4).fill('at-late'));
  expect(server.requests.length).toBe(1);
});

test('of two processes whose Redis is emptied in the middle of a refresh, one asks the service, and both have its token', async () => {
  const held = server.holdAnswer();
  const first = setup.accessToken('at-0');
  await held.asked;
  server.answerRefreshes();
  await redis.flushall();
  const sibling = setup.newProcess();
  const second = accessTokenFrom(sibling, setup.id, 'at-0');
  // By the time that one has come through that was begun later, it would have asked, too.
  const other = { ...setup.company(), id: `${setup.id}_other`, companyId: 'cmp_other' };
  await sibling.install(other, setup.grant('at-other', 'rt-other'));
  await sibling.rotate(other.id);
  held.answer(200, ANSWERED);
  expect(await Promise.all([first, second])).toEqual(['at-late', 'at-late']);
  const sent = server.requests.map(({ body }) => new URLSearchParams(body).get('refresh_token'));
  expect(sent).toEqual(['rt-0', 'rt-other']);
  expect(await setup.stored()).toMatchObject({ refresh: 'rt-late', refreshes: 1 });
});

test('a process that ends waits for no other one’s refresh, also where Redis has forgotten that', async () => {
  const held = server.holdAnswer();
  const refreshing = setup.tokens.rotate(setup.id);
  await held.asked;
  await redis.flushall();
  const sibling = setup.newProcess();
  const isTold = expect(accessTokenFrom(sibling, setup.id, 'at-0')).rejects.toMatchObject({
    remedy: 'wait',
    message: expect.stringContaining('being stopped'),
  });
  await waitFor(() => redis.exists(`tokens:{${setup.id}}:lock`));
  sibling.end();
  // Before the other refresh has come to its end.
  await isTold;
  held.answer(200, ANSWERED);
  await refreshing;
  expect(server.requests.length).toBe(1);
});

test('nothing is stored in clear', async () => {
  const row = JSON.stringify(await store.find(setup.id));
  expect(row).not.toMatch(/at-0|rt-0/);
});

test('an access token that was noted at a moment that cannot be is renewed before it is used, once', async () => {
  server.answerRefreshes();
  const future = setup.now + 20 * HOUR_MS;
  const noted = { grantedAt: future, accessExpiresAt: future + HOUR_MS };
  await setup.tokens.install(setup.company(), { accessToken: 'at-9', refreshToken: 'rt-9', ...noted });
  const held = await setup.tokens.heldToken(setup.id, undefined, 'contacts');
  expect(held.text).toBe('at-1');
  setup.now += HOUR_MS / 2;
  expect(await setup.accessToken()).toBe('at-1');
  expect(server.requests.length).toBe(1);
});

test('a grant counts from when it came, not from when it is stored', async () => {
  const granted = setup.grant('at-9', 'rt-9');
  setup.now += 5 * DAY_MS;
  await setup.tokens.install(setup.company(), granted);
  expect(await setup.stored()).toMatchObject({ refresh_issued_at: setup.start, refreshed_at: setup.start });
});

test('an installed instance keeps its counts over a new authorization', async () => {
  server.answerRefreshes({ rotating: true });
  const { version } = await setup.stored();
  await setup.tokens.rotate(setup.id);
  await setup.tokens.install({ ...setup.company(), name: 'Acme II' }, setup.grant('at-9', 'rt-9'));
  expect(await setup.stored()).toMatchObject({
    access: 'at-9',
    refresh: 'rt-9',
    rotations: 1,
    refreshes: 1,
    version: version + 2,
  });
  expect(await instances.find(setup.id)).toMatchObject({ name: 'Acme II' });
});
