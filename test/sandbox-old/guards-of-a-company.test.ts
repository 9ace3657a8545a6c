import { expect, test } from 'vitest';
import { at, START_MS, startFrozen } from '../sandbox/support/test-sandbox.ts';

async function start() {
  const service = await startFrozen();
  const company = await service.company({ plan: 'enterprise' });
  const token = at(company.api_tokens, 0).token;
  return { service, company, token };
}

test('a guard is the company’s: its own tokens and a partner’s fill one bucket', async () => {
  const { service, company, token } = await start();
  const { access_token } = await service.install(company);
  const { body } = await service.call<{ _results: { id: string }[] }>('GET', '/conversations?limit=1', token);
  const path = `/conversations/${at(body._results, 0).id}`;
  const patch = async (by: string) =>
    (await service.call('PATCH', path, by, { subject: 'Something else' })).status;
  for (const by of [token, access_token, token, access_token, token]) expect(await patch(by)).toBe(200);
  expect(await patch(access_token)).toBe(429);
  expect(await patch(token)).toBe(429);
});

test('a message is seen ten times an hour, by whichever of its names', async () => {
  const { service, token } = await start();
  const list = await service.call<{ _results: { id: string }[] }>('GET', '/conversations?limit=1', token);
  const of = at(list.body._results, 0).id;
  const sent = await service.call<{ id: string; message_uid: string }>(
    'POST',
    `/conversations/${of}/messages`,
    token,
    { body: 'Hello' },
  );
  const { id, message_uid } = sent.body;
  const seen = async (name: string) =>
    (await service.call('POST', `/messages/${name}/seen`, token, {})).status;
  for (let times = 0; times < 10; times++) expect(await seen(times % 2 === 0 ? id : message_uid)).toBe(200);
  expect(await seen(id)).toBe(429);
  expect(await seen(message_uid)).toBe(429);
  // A window that begins in a time to come is none.
  await service.done('clock', { set: START_MS - 1_000 });
  expect(await seen(id)).toBe(200);
});

test('inbound messages without a conversation’s reference count by who sent them', async () => {
  const { service, company, token } = await start();
  const path = `/channels/${at(company.channels, 0)}/inbound_messages`;
  const send = async (handle: string) =>
    (await service.call('POST', path, token, { sender: { handle }, body: 'Hello' })).status;
  for (let times = 0; times < 5; times++) expect(await send('p@x.example')).toBe(202);
  expect(await send('p@x.example')).toBe(429);
  expect(await send('q@x.example')).toBe(202);
});

test('the journal hides secrets of Base64 in a path and a value, and what passes for a page token', async () => {
  const { service, token } = await start();
  const secret = 'MX8SE7vBQO8iEWM/qNpgvN4vRDZ6PAEdQdqJh1V9S+U=';
  await service.api(`/contacts/${encodeURIComponent(secret)}`, token);
  await service.api(`/contacts?page_token=${token}&note=${encodeURIComponent(secret)}`, token);
  const journal = JSON.stringify(await service.journal());
  expect(journal).toContain('[hidden]');
  for (const part of ['MX8SE7vB', 'qNpgvN4v', token]) expect(journal).not.toContain(part);
});
