import { expect, test } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { waitFor } from '../support/wait-for.ts';
import { accessTokenFrom } from './access-token.ts';
import { HOUR_MS, setUpTokens } from './tokens-setup.ts';

const setup = await setUpTokens();
const { redis, server } = setup;

test('a token that is rejected again and again is not renewed again and again', async () => {
  server.answerRefreshes();
  expect(await setup.accessToken('at-0')).toBe('at-1');
  for (const one of [setup.tokens, setup.newProcess()]) {
    await expect(accessTokenFrom(one, setup.id, 'at-1')).rejects.toMatchObject({
      remedy: 'wait',
      message: expect.stringMatching(/rejects access tokens that should still be good \(401\)/),
    });
  }
  expect(server.requests.length).toBe(1);
  // Its own end is another matter, and so is a new authorization.
  setup.now += HOUR_MS;
  expect(await setup.accessToken('at-0')).toBe('at-2');
  await setup.tokens.install(setup.company(), setup.grant('at-installed', 'rt-installed'));
  expect(await setup.accessToken('at-installed')).toBe('at-3');
});

test('tokens that end sooner than told, and are of use until then, are renewed as often as that takes', async () => {
  const pauseKey = () => `tokens:{${setup.id}}:rejection:pause`;
  /** The pauses after setup.tokens in a row that are rejected after so many milliseconds. */
  const pausesOf = async (usedForMs: number | undefined) => {
    const pauses: number[] = [];
    for (let tries = 0; tries < 10; tries++) {
      const token = await setup.tokens.heldToken(setup.id, undefined, 'contacts');
      if (usedForMs !== undefined) {
        token.accepted();
        setup.now += usedForMs;
        token.accepted();
      }
      await setup.tokens.heldToken(setup.id, token.text, 'contacts');
      pauses.push(await redis.pttl(pauseKey()));
      await redis.del(pauseKey());
    }
    return pauses;
  };
  const minute = 60_000;
  server.answerRefreshes();
  for (const usedForMs of [30 * minute, 2 * minute]) {
    const pauses = await pausesOf(usedForMs);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(usedForMs);
    // They grow all the same: half of each is certain.
    expect(pauses.at(-1)).toBeGreaterThan(usedForMs / 2 - minute / 2);
  }
  expect(Math.max(...(await pausesOf(20)))).toBeLessThanOrEqual(minute / 2);
  expect((await pausesOf(undefined)).at(-1)).toBeGreaterThan(29 * minute);
});

test('so they are where one process uses them, and another is told that they are over', async () => {
  const pauseKey = `tokens:{${setup.id}}:rejection:pause`;
  const usedForMs = 2 * 60_000;
  server.answerRefreshes();
  const [one, other] = [setup.newProcess(), setup.newProcess()];
  const pauses: number[] = [];
  for (let tries = 0; tries < 10; tries++) {
    const token = await one.heldToken(setup.id, undefined, 'contacts');
    token.accepted();
    setup.now += usedForMs;
    token.accepted();
    await waitFor(
      async () =>
        Number((await redis.hget(`tokens:{${setup.id}}:uses`, 'contacts'))?.split(' ')[1]) === usedForMs,
    );
    await other.heldToken(setup.id, token.text, 'contacts');
    pauses.push(await redis.pttl(pauseKey));
    await redis.del(pauseKey, `tokens:{${setup.id}}:uses`);
  }
  expect(Math.max(...pauses)).toBeLessThanOrEqual(usedForMs);
  expect(pauses.at(-1)).toBeGreaterThan(usedForMs / 4);
});

test.each(['conversations', '/tags'])(
  'tokens that one route (%s) rejects at once, while another takes them, are renewed ever more seldom',
  async (use) => {
    const pauseKey = `tokens:{${setup.id}}:rejection:pause`;
    server.answerRefreshes();
    const pauses: number[] = [];
    for (let tries = 0; tries < 10; tries++) {
      const elsewhere = await setup.tokens.heldToken(setup.id, undefined, 'contacts');
      elsewhere.accepted();
      setup.now += 60_000;
      elsewhere.accepted();
      await setup.tokens.heldToken(setup.id, elsewhere.text, use);
      pauses.push(await redis.pttl(pauseKey));
      await redis.del(pauseKey);
    }
    expect(pauses.at(-1)).toBeGreaterThan(29 * 60_000);
  },
);

test('a token that was over by the service’s time was rejected with good reason: its successor may be renewed, too', async () => {
  const clock = new ServiceClock(() => setup.now);
  const process = setup.newProcess({ clock, oauth: setup.newOAuthClient(clock) });
  server.answerRefreshes();
  const { answer } = server;
  server.answer = (response) => {
    response.setHeader('date', new Date(setup.now + HOUR_MS).toUTCString());
    if (server.requests.at(-1)?.method === 'HEAD') response.writeHead(404).end();
    else answer(response);
  };
  // By the local clock it has an hour to live.
  expect(await accessTokenFrom(process, setup.id, 'at-0')).toBe('at-1');
  expect(await accessTokenFrom(process, setup.id, 'at-1')).toBe('at-2');
  await expect(accessTokenFrom(process, setup.id, 'at-2')).rejects.toMatchObject({ remedy: 'wait' });
});

test('clocks of the token route that do not agree cost a few refreshes, not one a request', async () => {
  const clock = new ServiceClock(() => setup.now);
  const told = (moment: number) => new Date(moment).toUTCString();
  const process = setup.newProcess({ clock, oauth: setup.newOAuthClient(clock) });
  server.answerRefreshes();
  const { answer } = server;
  let refreshes = 0;
  server.answer = (response) => {
    response.setHeader('date', told(setup.now));
    if (server.requests.at(-1)?.method === 'HEAD') return response.writeHead(404).end();
    refreshes++;
    answer(response);
  };
  // Another machine at the same address has another time, and answers twice in a row.
  const ask = (rejected?: string) => {
    for (let time = 0; time < 2; time++) clock.observe(told(setup.now + 2 * HOUR_MS));
    return process.heldToken(setup.id, rejected, 'contacts');
  };
  for (let request = 0; request < 60; request++) await ask();
  expect(refreshes).toBe(4);
  expect((await ask()).isDue()).toBe(false);

  // One that the service rejects is renewed all the same, and the half of an hour is over sometime.
  expect((await ask('at-4')).text).toBe('at-5');
  setup.now += HOUR_MS / 2;
  for (let request = 0; request < 60; request++) await ask();
  expect(refreshes).toBe(7);
});
