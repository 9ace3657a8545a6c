import { expect, test } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { TokenStore } from '../../src/store/tokens.ts';
import { waitFor } from '../support/wait-for.ts';
import { accessTokenFrom } from './access-token.ts';
import type { TokenServer } from './token-server.ts';
import { ANSWERED, setUpTokens } from './tokens-setup.ts';

const setup = await setUpTokens();
const { db, instances, redis, server, store } = setup;

test('invalid_grant after somebody else has renewed the grant is no harm', async () => {
  const held = server.holdAnswer();
  const refreshing = setup.accessToken('at-0');
  await held.asked;
  const sibling = await setup.newUnlocked();
  server.answerRefreshes({ rotating: true });
  expect(await accessTokenFrom(sibling, setup.id, 'at-0')).toBe('at-1');
  held.answer(400, { error: 'invalid_grant' });
  expect(await refreshing).toBe('at-1');
  expect((await instances.find(setup.id))?.status).toBe('active');
});

/** A refresh that waits for its answer, while that of a sibling, which does not see its lock, is refused. */
async function refuseSibling() {
  const held = server.holdAnswer();
  const refreshing = setup.accessToken('at-0');
  await held.asked;
  const sibling = await setup.newUnlocked();
  server.answerJson(400, { error: 'invalid_grant' });
  await expect(accessTokenFrom(sibling, setup.id, 'at-0')).rejects.toMatchObject({ remedy: 'reauthorize' });
  return { held, refreshing };
}

test('a late holder that brings a good grant after a sibling’s was refused: the instance is awake again', async () => {
  const { held, refreshing } = await refuseSibling();
  expect((await instances.find(setup.id))?.status).toBe('needs_reauthorization');
  held.answer(200, ANSWERED);
  expect(await refreshing).toBe('at-late');
  expect(await instances.find(setup.id)).toMatchObject({ status: 'active', notice: null });
  expect(await setup.stored()).toMatchObject({ refresh: 'rt-late' });
});

test('a grant that was refused is not asked for again, by nobody, and it is told once', async () => {
  server.answerJson(400, { error: 'invalid_grant' });
  const siblings = [setup.tokens, setup.newProcess(), setup.newProcess()];
  const asking = siblings.flatMap((one) => [accessTokenFrom(one, setup.id, 'at-0'), one.rotate(setup.id)]);
  const results = await Promise.allSettled(asking);
  expect(results.map(({ status }) => status)).toEqual(Array(6).fill('rejected'));
  await expect(setup.accessToken('at-0')).rejects.toMatchObject({ remedy: 'reauthorize' });
  expect(server.requests.length).toBe(1);
  expect(setup.events).toEqual(['rejected']);
});

test('of two that are refused, as the lock of one ran out, one tells it', async () => {
  const { held, refreshing } = await refuseSibling();
  expect(setup.events).toEqual(['rejected']);
  held.answer(400, { error: 'invalid_grant' });
  await expect(refreshing).rejects.toMatchObject({ remedy: 'reauthorize' });
  expect(setup.events).toEqual(['rejected']);
});

test('where the service does not say whose a grant is, its end promises no repair by a new authorization', async () => {
  const unknown = {
    id: `${setup.id}_unknown`,
    companyId: null,
    name: 'Installed today',
    installedAt: setup.now,
  };
  await setup.tokens.install(unknown, setup.grant('at-u', 'rt-u'));
  server.answerJson(400, { error: 'invalid_grant' });
  for (const one of [setup.id, unknown.id]) await expect(setup.tokens.rotate(one)).rejects.toThrow();
  expect((await instances.find(setup.id))?.notice).toContain('Authorize the app again to go on');
  const notice = (await instances.find(unknown.id))?.notice;
  expect(notice).toContain('a new one begins a copy of its own');
  expect(notice).not.toContain('to go on');
});

test('a refusal of a grant that an install has replaced meanwhile ends nothing', async () => {
  const racing = new (class extends TokenStore {
    override async reject(...args: Parameters<TokenStore['reject']>): Promise<boolean> {
      // Its lock was lost, and the install comes between its second look and its verdict.
      await redis.flushall();
      await setup.newProcess().install(setup.company(), setup.grant('at-installed', 'rt-installed'));
      return super.reject(...args);
    }
  })(db);
  server.answerJson(400, { error: 'invalid_grant' });
  const refusing = accessTokenFrom(setup.newProcess({ store: racing }), setup.id, 'at-0');
  await expect(refusing).rejects.toMatchObject({ remedy: 'reauthorize' });
  expect(await instances.find(setup.id)).toMatchObject({ status: 'active', notice: null });
  expect(await setup.accessToken()).toBe('at-installed');
});

test('invalid_grant otherwise ends the grant: a new authorization is needed, the reason is noted', async () => {
  server.answerJson(400, { error: 'invalid_grant' });
  await expect(setup.accessToken('at-0')).rejects.toMatchObject({ remedy: 'reauthorize' });
  const instance = await instances.find(setup.id);
  expect(instance?.status).toBe('needs_reauthorization');
  expect(instance?.notice).toMatch(/authorize/i);
  expect(setup.events).toEqual(['rejected']);

  await setup.tokens.install(setup.company(), setup.grant('at-9', 'rt-9'));
  expect(await instances.find(setup.id)).toMatchObject({ status: 'active', notice: null });
  expect(await setup.accessToken()).toBe('at-9');
});

test('invalid_grant after a disconnect does not wake the instance', async () => {
  const held = server.holdAnswer();
  const refreshing = setup.accessToken('at-0').catch((error: unknown) => error);
  await held.asked;
  await store.disconnect(setup.id);
  held.answer(400, { error: 'invalid_grant' });
  expect(await refreshing).toMatchObject({ remedy: 'reauthorize' });
  expect((await instances.find(setup.id))?.status).toBe('disconnected');
});

test.each<[string, TokenServer['answer'], object]>([
  ['500', (response) => response.writeHead(500).end('{}'), { remedy: 'wait', status: 500 }],
  [
    '429',
    (response) => response.writeHead(429, { 'retry-after': '0.3' }).end('{}'),
    { remedy: 'wait', status: undefined, retryAfterMs: 300 },
  ],
  ['no answer', () => undefined, { remedy: 'wait', status: undefined }],
  ['an answer that does not end', (response) => response.writeHead(200).write('{'), { remedy: 'wait' }],
  ['a broken connection', (response) => response.destroy(), { remedy: 'wait', status: undefined }],
  [
    'wrong credentials',
    (response) =>
      response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"invalid_client"}'),
    { remedy: 'give_up' },
  ],
])(
  'trouble at the token route (%s) keeps the grant, and a while later it is asked again',
  async (_what, answer, expected) => {
    server.answer = answer;
    setup.tokens = setup.newProcess({ oauth: setup.newOAuthClient(new ServiceClock(() => setup.now), 0.2) });
    const before = await setup.stored();
    await expect(setup.accessToken('at-0')).rejects.toMatchObject(expected);
    expect(await setup.stored()).toEqual(before);
    expect((await instances.find(setup.id))?.status).toBe('active');
    expect(setup.events).toEqual(['failed']);
    server.answerRefreshes();
    expect(await waitFor(() => setup.accessToken('at-0'))).toBe('at-1');
  },
);
