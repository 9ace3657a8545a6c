import { expect, test } from 'vitest';
import { type List, startMessaging } from '../sandbox/support/messaging.ts';
import { START_MS } from '../sandbox/support/test-sandbox.ts';

interface Channel {
  _links: { self: string; related: { inbox: string } };
  id: string;
  name: string;
  type: string;
  address: string | null;
  send_as: string | null;
  inbox_id: string;
  is_private: boolean;
}

const NOW = START_MS / 1000;

test('a channel is created in an inbox, listed, and read back as it was sent', async () => {
  const { read, send, inbox, otherInbox, company } = await startMessaging();
  const sent = {
    type: 'custom',
    name: 'Ladengespräch 💬',
    address: 'shop-7',
    send_as: 'shop@example.org',
    settings: { webhook_url: 'https://hooks.example/x', nested: { deep: [1] } },
    of_ours: true,
  };
  const { status, body } = await send<Channel>('POST', `/inboxes/${otherInbox}/channels`, sent);
  expect(status).toBe(201);
  expect(body).toMatchObject({
    ...sent,
    inbox_id: otherInbox,
    is_private: false,
    created_at: NOW,
    updated_at: NOW,
  });
  expect(await read(body._links.self)).toEqual(body);
  expect(await read(body._links.related.inbox)).toMatchObject({ id: otherInbox });
  const all = await read<List<Channel>>('/channels');
  expect(all._results.map(({ id }) => id)).toEqual([...company.channels, body.id]);
  const ofInbox = await read<List<Channel>>(`/inboxes/${otherInbox}/channels`);
  expect(ofInbox._results.at(-1)).toEqual(body);
  const ofOther = await read<List<Channel>>(`/inboxes/${inbox}/channels`);
  expect(ofOther._results.map(({ id }) => id)).not.toContain(body.id);
});

test('a channel without a name is called by its address, its sender or its type', async () => {
  const { send, inbox } = await startMessaging();
  const name = async (body: object) =>
    (await send<Channel>('POST', `/inboxes/${inbox}/channels`, { type: 'email', ...body })).body.name;
  expect(await name({ address: 'a@example.com', send_as: 'b@example.com' })).toBe('a@example.com');
  expect(await name({ send_as: 'b@example.com' })).toBe('b@example.com');
  expect(await name({})).toBe('email');
});

test('the channels at start take messages of other systems, and belong to shared inboxes', async () => {
  const { read, company } = await startMessaging();
  for (const id of company.channels) {
    const channel = await read<Channel>(`/channels/${id}`);
    expect(['custom', 'application']).toContain(channel.type);
    expect(company.inboxes.slice(0, 2)).toContain(channel.inbox_id);
  }
});

test('what is wrong is refused: a type, a missing one, a foreign inbox, another method', async () => {
  const { read, send, inbox, foreign } = await startMessaging();
  const statusOf = async (...sent: Parameters<typeof send>) => (await send(...sent)).status;
  const path = `/inboxes/${inbox}/channels`;
  const before = await read('/channels');
  for (const body of [{}, { name: 'x' }, { type: 'pigeon' }, { type: 7 }, { type: 'sms', settings: 'x' }]) {
    expect(await statusOf('POST', path, body), JSON.stringify(body)).toBe(422);
  }
  expect(await statusOf('POST', path, ['custom'])).toBe(400);
  for (const id of ['inb_none', foreign.inbox]) {
    expect(await statusOf('POST', `/inboxes/${id}/channels`, { type: 'sms' })).toBe(404);
    expect(await statusOf('GET', `/inboxes/${id}/channels`)).toBe(404);
  }
  for (const id of ['cha_none', foreign.channel]) expect(await statusOf('GET', `/channels/${id}`)).toBe(404);
  expect(await statusOf('PATCH', path, { type: 'sms' })).toBe(405);
  expect(await statusOf('POST', '/channels', { type: 'sms' })).toBe(405);
  expect(await read('/channels')).toEqual(before);
});
