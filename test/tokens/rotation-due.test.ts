import { expect, test } from 'vitest';
import { accessTokenFrom } from './access-token.ts';
import { DAY_MS, HOUR_MS, setUpTokens } from './tokens-setup.ts';

const setup = await setUpTokens();
const { instances, server } = setup;

async function dueIds(): Promise<string[]> {
  return (await setup.tokens.dueForRotation()).map(({ instance_id }) => instance_id);
}

test('what is due for rotation: the instance’s own time has come, and the last try lies an hour back', async () => {
  server.answerRefreshes();
  const { refresh_due_at: dueAt } = await setup.stored();
  setup.now = dueAt - 1;
  expect(await dueIds()).not.toContain(setup.id);
  setup.now = dueAt;
  expect(await dueIds()).toContain(setup.id);

  await setup.tokens.rotate(setup.id);
  expect(await dueIds()).not.toContain(setup.id);
  setup.now += HOUR_MS;
  expect(await dueIds()).toContain(setup.id);

  await instances.setStatus(setup.id, 'paused', { from: ['active'] });
  expect(await dueIds()).toContain(setup.id);
  await instances.setStatus(setup.id, 'needs_reauthorization', { from: ['paused'] });
  expect(await dueIds()).not.toContain(setup.id);
});

test('what is due, and has been renewed for another reason before the sweep comes to it, is not renewed again', async () => {
  server.answerRefreshes({ rotating: true });
  setup.now = (await setup.stored()).refresh_due_at;
  const [due] = (await setup.tokens.dueForRotation()).filter(({ instance_id }) => instance_id === setup.id);
  await accessTokenFrom(setup.newProcess(), setup.id);
  expect(server.requests.length).toBe(1);
  await setup.tokens.rotate(setup.id, due?.version);
  expect(server.requests.length).toBe(1);
});

test('a grant that was noted at a moment that cannot be is due: nobody knows when it ends', async () => {
  server.answerRefreshes();
  const future = setup.now + 400 * DAY_MS;
  const noted = { grantedAt: future, accessExpiresAt: future + HOUR_MS };
  await setup.tokens.install(setup.company(), { accessToken: 'at-9', refreshToken: 'rt-9', ...noted });
  expect(await dueIds()).toContain(setup.id);
  await setup.tokens.rotate(setup.id);
  expect(await setup.stored()).toMatchObject({
    refresh_issued_at: setup.now,
    refresh_due_at: setup.now,
    refreshed_at: setup.now,
  });
  expect(await dueIds()).not.toContain(setup.id);
  // From setup.now on it is tried again and again, until the refresh token has changed.
  setup.now += HOUR_MS;
  expect(await dueIds()).toContain(setup.id);
  await setup.tokens.rotate(setup.id);
  setup.now += HOUR_MS;
  expect(await dueIds()).toContain(setup.id);
  server.answerRefreshes({ rotating: true });
  await setup.tokens.rotate(setup.id);
  setup.now += 170 * DAY_MS;
  expect(await dueIds()).not.toContain(setup.id);
  setup.now += 10 * DAY_MS;
  expect(await dueIds()).toContain(setup.id);
});

/** Lets the sweep come round every half hour until a moment. @returns when it has asked for setup.tokens */
async function sweepUntil(end: number): Promise<number[]> {
  const asked: number[] = [];
  for (; setup.now < end; setup.now += HOUR_MS / 2) {
    if (!(await dueIds()).includes(setup.id)) continue;
    await setup.tokens.rotate(setup.id);
    asked.push(setup.now);
  }
  return asked;
}

const longestGap = (moments: number[]) =>
  Math.max(...moments.slice(1).map((moment, index) => moment - (moments[index] ?? 0)));

test('a refresh token of which nobody knows when it ends is tried at distances that grow up to 8 hours', async () => {
  server.answerRefreshes();
  const future = setup.now + 2 * HOUR_MS;
  const noted = { grantedAt: future, accessExpiresAt: future + HOUR_MS };
  await setup.tokens.install(setup.company(), { accessToken: 'at-9', refreshToken: 'rt-9', ...noted });
  const asked = await sweepUntil(setup.now + 3 * DAY_MS);
  expect(asked.slice(0, 6).map((moment) => (moment - setup.start) / HOUR_MS)).toEqual([0, 1, 2, 4, 8, 16]);
  expect(longestGap(asked)).toBe(8 * HOUR_MS);
  expect(asked.length).toBeLessThanOrEqual(14);
});

test('one whose time has come is tried every hour for a week, as long as any reading of six months; then every 8 hours', async () => {
  server.answerRefreshes();
  const { refresh_due_at } = await setup.stored();
  setup.now = refresh_due_at;
  const hourly = await sweepUntil(refresh_due_at + 7 * DAY_MS);
  expect(longestGap(hourly)).toBe(HOUR_MS);
  const later = await sweepUntil(refresh_due_at + 10 * DAY_MS);
  expect(longestGap(later)).toBe(8 * HOUR_MS);
  expect(later.length).toBeLessThanOrEqual(14);
});
