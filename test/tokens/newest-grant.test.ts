import { expect, test } from 'vitest';
import { ANSWERED, setUpTokens } from './tokens-setup.ts';

const setup = await setUpTokens();
const { instances, redis, server, store } = setup;

test('an install that comes while a refresh is under way is stored at once, and has the last word', async () => {
  const held = server.holdAnswer();
  const refreshing = setup.accessToken('at-0');
  await held.asked;
  await setup.newProcess().install(setup.company(), setup.grant('at-installed', 'rt-installed'));
  expect(await setup.stored()).toMatchObject({ access: 'at-installed', refresh: 'rt-installed' });
  held.answer(200, ANSWERED);
  expect(await refreshing).toBe('at-installed');
  expect(await setup.stored()).toMatchObject({ access: 'at-installed', refresh: 'rt-installed' });
  // That the token before it was rejected says nothing of its own.
  server.answerRefreshes();
  expect(await setup.accessToken('at-installed')).toBe('at-1');
});

test.each([
  ['that ends later', 'a', 5_000, 1_000],
  ['that ends later', 'b', 1_000, 5_000],
  ['that comes later, where both end at the same time', 'b', 5_000, 5_000],
])(
  'of two grants that are asked for at the same time, the one stays %s (%s), whichever is stored last',
  async (_what, kept, endsA, endsB) => {
    const localNow = Date.now();
    const grant = (text: string, endsMs: number) => {
      const { accessExpiresAt, ...rest } = setup.grant(`at-${text}`, `rt-${text}`);
      return { ...rest, accessExpiresAt: accessExpiresAt + endsMs };
    };
    const a = { ...setup.company(localNow - 2_000), askedAt: localNow - 3_000 };
    const b = { ...setup.company(localNow - 1_000), askedAt: localNow - 3_000 };
    const installs = [
      () => setup.tokens.install(a, grant('a', endsA)),
      () => setup.tokens.install(b, grant('b', endsB)),
    ];
    for (const order of [installs, installs.toReversed()]) {
      await store.disconnect(setup.id);
      for (const install of order) await install();
      expect((await setup.stored()).access).toBe(`at-${kept}`);
    }
    // One that is asked for afterwards is newer, however soon it ends.
    const c = { ...setup.company(localNow), askedAt: localNow - 500 };
    await setup.tokens.install(c, grant('c', -60_000));
    expect((await setup.stored()).access).toBe('at-c');
  },
);

const MINUTE_MS = 60_000;

test.each<[string, string, number, number]>([
  ['stays over one that is stored after it and came before it', 'at-b', -2_000, -3_000],
  ['that came at the same moment as another gives way to it', 'at-a', -2_000, -2_000],
  ['gives way to a later one', 'at-a', -3_000, -2_000],
  ['from a moment that is yet to come, by a clock that was wrong, keeps no other out', 'at-a', MINUTE_MS, 0],
  ['that seems to be far newer, by a clock that was wrong, keeps no other out', 'at-a', 0, -11 * MINUTE_MS],
])('of two grants of a company, one %s', async (_what, kept, cameB, cameA) => {
  const localNow = Date.now();
  await setup.newProcess().install(setup.company(localNow + cameB), setup.grant('at-b', 'rt-b'));
  const before = await setup.stored();
  await setup.tokens.install(setup.company(localNow + cameA), setup.grant('at-a', 'rt-a'));
  const after = await setup.stored();
  expect(after.access).toBe(kept);
  expect(after.refresh).toBe(kept.replace('at', 'rt'));
  if (kept === 'at-b') expect(after).toEqual(before);
  expect((await instances.find(setup.id))?.status).toBe('active');
});

test('a later grant stays over an earlier one also where its instance was paused meanwhile', async () => {
  const localNow = Date.now();
  await setup.newProcess().install(setup.company(localNow - 1_000), setup.grant('at-b', 'rt-b'));
  await instances.setStatus(setup.id, 'paused', { from: ['active'] });
  await setup.tokens.install(setup.company(localNow - 2_000), setup.grant('at-a', 'rt-a'));
  expect(await setup.stored()).toMatchObject({ access: 'at-b', refresh: 'rt-b' });
  expect((await instances.find(setup.id))?.status).toBe('paused');
});

test('an earlier grant is taken all the same where the later one is over', async () => {
  const localNow = Date.now();
  await setup.newProcess().install(setup.company(localNow - 1_000), setup.grant('at-b', 'rt-b'));
  server.answerJson(400, { error: 'invalid_grant' });
  await expect(setup.accessToken('at-b')).rejects.toMatchObject({ remedy: 'reauthorize' });
  await setup.tokens.install(setup.company(localNow - 2_000), setup.grant('at-a', 'rt-a'));
  expect(await setup.stored()).toMatchObject({ access: 'at-a', refresh: 'rt-a' });
  expect(await instances.find(setup.id)).toMatchObject({ status: 'active', notice: null });
});

test('a late holder, whose lock ran out, does not overwrite a newer grant, and uses that', async () => {
  const held = server.holdAnswer();
  const refreshing = setup.accessToken('at-0');
  await held.asked;
  await redis.flushall();
  await setup.newProcess().install(setup.company(), setup.grant('at-installed', 'rt-installed'));
  held.answer(200, ANSWERED);
  expect(await refreshing).toBe('at-installed');
  expect(await setup.stored()).toMatchObject({ access: 'at-installed', refresh: 'rt-installed' });
  expect(setup.events).toEqual([]);
});

test('nor does it overwrite the grant of an install that came after a disconnect', async () => {
  const held = server.holdAnswer();
  const refreshing = setup.accessToken('at-0');
  await held.asked;
  await redis.flushall();
  await store.disconnect(setup.id);
  await setup.newProcess().install(setup.company(), setup.grant('at-installed', 'rt-installed'));
  held.answer(200, ANSWERED);
  expect(await refreshing).toBe('at-installed');
  expect(await setup.stored()).toMatchObject({ access: 'at-installed', refresh: 'rt-installed' });
});

test('a refresh that ends after a disconnect stores nothing, and only a new authorization helps', async () => {
  const held = server.holdAnswer();
  const refreshing = setup.accessToken('at-0').catch((error: unknown) => error);
  await held.asked;
  await store.disconnect(setup.id);
  held.answer(200, ANSWERED);
  expect(await refreshing).toMatchObject({ remedy: 'reauthorize' });
  expect(await store.find(setup.id)).toBeUndefined();
  await expect(setup.accessToken()).rejects.toMatchObject({ remedy: 'reauthorize' });
});
