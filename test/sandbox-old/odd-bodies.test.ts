import { expect, test } from 'vitest';
import { at, startFrozen } from '../sandbox/support/test-sandbox.ts';

const brackets = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

async function start() {
  const service = await startFrozen();
  const company = await service.company({});
  const { token } = at(company.api_tokens, 0);
  const send = (method: string, path: string, body: string) => service.api(path, token, { method, body });
  return { service, company, token, send };
}

test('a body of too many levels is refused, with all headers, and breaks neither lists nor snapshots', async () => {
  const { service, company, token, send } = await start();
  const path = `/accounts/${at(company.accounts, 0)}`;
  for (const levels of [500, 5_000, 100_000]) {
    const refused = await send('PATCH', path, `{"deep":${brackets(levels)}}`);
    expect(await refused.json()).toMatchObject({
      _error: { status: 400, message: expect.stringContaining('500 levels') },
    });
    expect(refused.status).toBe(400);
    expect(refused.headers.get('x-ratelimit-remaining')).not.toBeNull();
  }
  expect((await send('PATCH', path, `{"deep":${brackets(400)}}`)).status).toBe(200);
  const list = await service.call<{ _results: { deep?: unknown }[] }>('GET', '/accounts', token);
  expect(list.body._results.map(({ deep }) => deep)).toContainEqual(JSON.parse(brackets(400)));
  const snapshot = await fetch(`${service.sandbox.origin}/_sandbox/snapshot`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  expect(snapshot.status).toBe(201);
});

test('a route that wants nothing of a body takes none that is no JSON object', async () => {
  const { service, company, token, send } = await start();
  const path = `/channels/${at(company.channels, 0)}/inbound_messages`;
  const sent = { sender: { handle: 'a@b.example' }, body: 'Hello' };
  const { body } = await service.call<{ message_uid: string }>('POST', path, token, sent);
  const seen = async (text: string) =>
    (await send('POST', `/messages/${body.message_uid}/seen`, text)).status;
  expect(await Promise.all(['{', '[]', 'null'].map(seen))).toEqual([400, 400, 400]);
  expect(await Promise.all(['', '{}'].map(seen))).toEqual([200, 200]);
});
