import { expect, test } from 'vitest';
import { type Conversation, type List, startMessaging } from '../sandbox/support/messaging.ts';
import { at } from '../sandbox/support/test-sandbox.ts';

const ids = (records: readonly { id: string }[]) => records.map(({ id }) => id);

async function start() {
  const parts = await startMessaging();
  const path = `/conversations/${parts.conversation.id}`;
  await parts.send('PATCH', path, { tag_ids: [] });
  const links = ids((await parts.read<List<{ id: string }>>('/links'))._results);
  return { ...parts, path, links };
}

test('tags are put on a conversation once each, and read back', async () => {
  const { read, send, path, tag, otherTag } = await start();
  const first = await send('POST', `${path}/tags`, { tag_ids: [tag] });
  expect(first.status).toBe(200);
  expect(first.body.tags).toMatchObject([{ id: tag, name: 'Urgent' }]);
  const second = await send('POST', `${path}/tags`, { tag_ids: [otherTag, tag, otherTag] });
  expect(ids(second.body.tags).toSorted()).toEqual([tag, otherTag].toSorted());
  expect(await read(path)).toEqual(second.body);
});

test('tags are taken off by a DELETE with a body; one that is not on the conversation is no error', async () => {
  const { read, send, path, tag, otherTag } = await start();
  await send('POST', `${path}/tags`, { tag_ids: [tag, otherTag] });
  const { status, body } = await send('DELETE', `${path}/tags`, { tag_ids: [tag] });
  expect(status).toBe(200);
  expect(ids(body.tags)).toEqual([otherTag]);
  const again = await send('DELETE', `${path}/tags`, { tag_ids: [tag] });
  expect(again.status).toBe(200);
  expect(ids((await read<Conversation>(path)).tags)).toEqual([otherTag]);
});

test('links are put on a conversation and taken off again', async () => {
  const { read, send, path, links } = await start();
  const other = at(links, 0);
  const created = await send<{ id: string }>('POST', '/links', { name: 'Order 5' });
  const { id } = created.body;
  const added = await send('POST', `${path}/links`, { link_ids: [id, other, id] });
  expect(added.status).toBe(200);
  expect(added.body.links).toMatchObject([{ id, name: 'Order 5' }, { id: other }]);
  expect(await read(path)).toEqual(added.body);
  const removed = await send('DELETE', `${path}/links`, { link_ids: [id] });
  expect(removed.status).toBe(200);
  expect(ids(removed.body.links)).toEqual([other]);
  expect(await read(path)).toEqual(removed.body);
});

test('ids of tags and links that are unknown, foreign or missing are 422, and nothing changes', async () => {
  const { read, send, statusOf, path, tag, links, foreign } = await start();
  await send('POST', `${path}/tags`, { tag_ids: [tag] });
  await send('POST', `${path}/links`, { link_ids: [at(links, 0)] });
  const before = await read<Conversation>(path);
  for (const method of ['POST', 'DELETE']) {
    for (const tag_ids of [['tag_none'], [tag, foreign.tag], [], 'all', [7]]) {
      expect(await statusOf(method, `${path}/tags`, { tag_ids })).toBe(422);
    }
    for (const link_ids of [['lnk_none'], [at(links, 0), 'lnk_none'], []]) {
      expect(await statusOf(method, `${path}/links`, { link_ids })).toBe(422);
    }
    expect(await statusOf(method, `${path}/tags`, {})).toBe(422);
    expect(await statusOf(method, `${path}/tags`, [tag])).toBe(400);
    expect(await statusOf(method, `${path}/links`)).toBe(422);
  }
  expect(await read(path)).toEqual(before);
  expect(await statusOf('GET', `${path}/tags`)).toBe(405);
  expect(await statusOf('PUT', `${path}/links`, { link_ids: links })).toBe(405);
});

test('a private tag does not go onto a conversation in a shared inbox', async () => {
  const { read, send, path, privateTag } = await start();
  const refused = await send<Record<string, unknown>>('POST', `${path}/tags`, { tag_ids: [privateTag] });
  expect(refused.status).toBe(422);
  expect(refused.body).toMatchObject({ _error: { message: expect.stringContaining(privateTag) } });
  expect((await send('PATCH', path, { tag_ids: [privateTag] })).status).toBe(422);
  expect((await read<Conversation>(path)).tags).toEqual([]);
});

test('a conversation in a private inbox takes its own teammate’s tags alone, and cannot leave with them', async () => {
  const { read, send, statusOf, path, tag, privateTag, privateInbox, inbox } = await start();
  await send('PATCH', path, { inbox_id: privateInbox });
  expect(await statusOf('POST', `${path}/tags`, { tag_ids: [tag] })).toBe(422);
  expect(await statusOf('POST', `${path}/tags`, { tag_ids: [privateTag] })).toBe(200);
  expect(await statusOf('PATCH', path, { inbox_id: inbox })).toBe(422);
  expect(await read(path)).toMatchObject({ inbox: { id: privateInbox }, tags: [{ id: privateTag }] });
  const left = await send('PATCH', path, { inbox_id: inbox, tag_ids: [tag] });
  expect(left.body).toMatchObject({ inbox: { id: inbox }, tags: [{ id: tag }], is_private: false });
});
