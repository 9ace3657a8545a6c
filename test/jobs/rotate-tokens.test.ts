import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { rotateTokens } from '../../jobs/rotate-tokens.ts';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { ServiceTime } from '../../src/client/service-time.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { Vault } from '../../src/tokens/vault.ts';
import { tempDir } from '../support/temp-dir.ts';
import { testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { tokenProcess } from '../tokens/token-process.ts';
import { startTokenServer } from '../tokens/token-server.ts';

const DAY_MS = 24 * 60 * 60_000;
const START = Date.UTC(2026, 2, 1, 12, 0, 0);
/** One more than a sweep has under way at once. */
const DUE = 5;

const server = await startTokenServer();
const redis = new Redis((await startTestRedis()).url);
const db = await openDatabase(`file:${tempDir()}/app.db`);
afterAll(async () => {
  redis.disconnect();
  await db.destroy();
});

let now = START;
const clock = new ServiceClock(() => now);
const vault = new Vault([{ id: 'k1', key: randomBytes(32) }]);
const parts = { db, redis, vault, clock, authUrl: server.url };

/** The refresh tokens that were asked with, each the name of its instance. */
const asked = () =>
  server.requests
    .filter(({ method }) => method === 'POST')
    .map(({ body }) => new URLSearchParams(body).get('refresh_token') ?? '');

test('a sweep leaves alone what a run has renewed while it was about others', async () => {
  const { tokens } = tokenProcess(parts);
  const { tokens: sibling } = tokenProcess(parts);
  for (let number = 1; number <= DUE; number++) {
    const id = `ins_${number}`;
    const lives = { grantedAt: START, accessExpiresAt: START + DAY_MS };
    const grant = { accessToken: 'at', refreshToken: id, ...lives };
    await tokens.install({ id, companyId: id, name: id, installedAt: START }, grant);
  }
  now = START + 180 * DAY_MS - DAY_MS / 4;
  const order = (await tokens.dueForRotation()).map(({ instance_id }) => instance_id);
  expect(order.length).toBe(DUE);
  const last = order.at(-1) ?? '';

  server.answerRefreshes({ rotating: true });
  const { answer } = server;
  const release = Promise.withResolvers<void>();
  server.answer = async (response) => {
    if (server.requests.at(-1)?.method === 'HEAD') return response.writeHead(404).end();
    const [sent] = asked().slice(-1);
    if (sent !== last) await release.promise;
    answer(response);
  };
  const sweep = rotateTokens(
    { tokens, time: new ServiceTime(clock, server.url) },
    testLogger().logger,
    new AbortController().signal,
  );
  await waitFor(() => asked().length === DUE - 1);
  await sibling.rotate(last);
  release.resolve();
  await sweep;
  expect(asked().sort()).toEqual([...order].sort());
  expect(await tokens.dueForRotation()).toEqual([]);
});
