import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { type Operation, ROUTES } from '../../src/contract/api/api.ts';
import { message } from '../../src/contract/api/messages.ts';
import { filled, idsOf, startOpen } from './support/routes.ts';
import { at, startCompany } from './support/test-sandbox.ts';

const HELLO = { body: 'Hello', sender: { handle: 'a@b.example' }, to: ['c@d.example'] };
const LONG = 'x'.repeat(100_000);

/** What bodies need, beside those of messages; the others need nothing. */
const BODIES: Partial<Record<Operation, object>> = {
  createChildTag: { name: 'x' },
  createAccount: { name: 'x' },
  createLink: { name: 'x' },
  createChannel: { type: 'custom' },
  createApplicationEvent: { type: 'x' },
};

/** A company that no limit and no guard stops, and a path with its ids in place of the placeholders. */
async function start() {
  const { service, company, token } = await startOpen();
  const ids = await idsOf(service, company);
  return { service, token, filled: (path: string) => filled(path, ids) };
}

describe('Errors (our choice)', () => {
  const kept = ROUTES.filter(([name]) => /^(create|update|reply|re(cord|ceive)|put|import)/.test(name));

  test.each(kept)('No body of %s makes a document that is not as described', async (name, route) => {
    const { service, token, filled } = await start();
    const answer = (route.answer as z.ZodObject).shape;
    const isMessage = 'message_uid' in answer;
    const unnamed = Object.keys(isMessage ? message.shape : answer).filter((one) => !route.body?.shape[one]);
    for (const [member, wrong] of unnamed.flatMap((one) => [5, [1], { x: 1 }].map((value) => [one, value]))) {
      const sent = { ...(isMessage ? HELLO : BODIES[name]), [String(member)]: wrong };
      const { status, body } = await service.call(route.method, filled(route.path), token, sent);
      expect([200, 201, 202]).toContain(status);
      const read = isMessage ? `/messages/${body.message_uid}` : '/me';
      expect((await service.call('GET', read, token)).status).toBe(200);
    }
  });

  test.each([
    '/channels/:channel_id/messages',
    '/conversations/:conversation_id/messages',
    '/channels/:channel_id/inbound_messages',
  ])('POST %s with metadata that is no object is 422', async (path) => {
    const { service, token, filled } = await start();
    for (const metadata of [[1], 'x', 5, null]) {
      const { status, body } = await service.call('POST', filled(path), token, { ...HELLO, metadata });
      expect(status).toBe(422);
      expect(body).toMatchObject({ _error: { message: expect.stringMatching(/^metadata: /) } });
    }
    const { status } = await service.call('POST', filled(path), token, { ...HELLO, metadata: { a: 1 } });
    expect(status).toBeLessThan(300);
  });

  test.each([
    ['an unknown id', '/conversations/:conversation_id/messages', { ...HELLO, author_id: LONG }, 422],
    ['many wrong members', '/channels/:channel_id/messages', { ...HELLO, to: Array(10_000).fill(5) }, 422],
    ['a long path', `/${LONG.slice(0, 10_000)}`, {}, 404],
  ])('The error about %s is short', async (_, path, body, status) => {
    const { service, token, filled } = await start();
    const answer = await service.call('POST', filled(path), token, body);
    expect(answer.status).toBe(status);
    expect(JSON.stringify(answer.body).length).toBeLessThan(1_000);
  });
});

/** The headers of an answer, but for the connection's; `more` requests are added to those that remain. */
function shown({ headers }: Response, more = 0) {
  const {
    connection,
    'keep-alive': _,
    'x-ratelimit-remaining': left,
    ...others
  } = Object.fromEntries(headers);
  return { ...others, remaining: Number(left) + more };
}

describe('Endpoints: routes (our choice)', () => {
  test('HEAD is answered like GET, and counts, but has no body', async () => {
    const { service, token } = await start();
    for (const path of ['/me', '/contacts?limit=5', '/conversations/search/order', '/contacts/crd_none']) {
      const get = await service.api(path, token);
      const head = await service.api(path, token, { method: 'HEAD' });
      expect(head.status).toBe(get.status);
      expect(await head.text()).toBe('');
      expect(shown(head, 1)).toEqual(shown(get));
    }
    expect((await service.api('/links/x', token, { method: 'OPTIONS' })).status).toBe(405);
  });
});

describe('The reading that changes are answered 204', () => {
  test('A change is answered 204 with all headers, and takes effect', async () => {
    const { service, company, token } = await startCompany({}, { readings: { changes: 204 } });
    const path = `/accounts/${at(company.accounts, 0)}`;
    const body = JSON.stringify({ name: 'New name' });
    const changed = await service.api(path, token, { method: 'PATCH', body });
    expect([changed.status, await changed.text()]).toEqual([204, '']);
    const { headers } = changed;
    expect([headers.get('content-length'), headers.get('x-service-tier')]).toEqual([null, '2']);
    expect(headers.get('x-ratelimit-remaining')).toBe('49');
    expect((await service.call('GET', path, token)).body).toMatchObject({ name: 'New name' });
    expect((await service.api('/accounts', token, { method: 'POST', body })).status).toBe(201);
    expect((await service.api(path, token, { method: 'PATCH', body: '{"name": 5}' })).status).toBe(422);
  });
});

describe('The journal', () => {
  test('It tells query parameters and members of a body that the service ignored', async () => {
    const { service, token, filled } = await start();
    const after = (await service.journal()).length;
    await service.call('GET', '/contacts?limit=5&colour=red&colour=blue', token);
    await service.call('GET', '/me?limit=5', token);
    await service.call('POST', '/links?colour=red', token, { name: 'x', colour: 'red', Name: 'y' });
    await service.call('POST', filled('/inboxes/:inbox_id/channels'), token, { type: 'no type', token });
    await service.call('GET', '/contacts', 'no token');
    expect((await service.journal(after)).map(({ ignored }) => ignored)).toEqual([
      ['query colour'],
      ['query limit'],
      ['query colour', 'body colour', 'body Name'],
      ['body token'],
      [],
    ]);
  });
});
