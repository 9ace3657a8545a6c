import { expect, test } from 'vitest';
import { type List, startMessaging } from '../sandbox/support/messaging.ts';
import { at, START_MS } from '../sandbox/support/test-sandbox.ts';

const NOW = START_MS / 1000;

test('what is changed of a conversation is read back as it was sent; updated_at tells when', async () => {
  const { read, send, service, company, conversation, otherInbox, tag, otherTag } = await startMessaging();
  const teammate = at(company.teammates, 1);
  await service.advance(3_000);
  const plain = { subject: 'Größe „M“ ✅', custom_fields: { order: [1, { deep: null }] }, of_ours: 'kept' };
  const { status, body } = await send('PATCH', `/conversations/${conversation.id}`, {
    ...plain,
    inbox_id: otherInbox,
    assignee_id: teammate.id,
    tag_ids: [otherTag, tag, tag],
    status: 'assigned',
  });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    ...plain,
    id: conversation.id,
    status: 'assigned',
    inbox: { id: otherInbox, name: 'Sales' },
    assignee: { id: teammate.id, name: teammate.name },
    created_at: conversation.created_at,
    updated_at: NOW + 3,
    recipient: conversation.recipient,
  });
  expect(body.tags.map(({ id }) => id)).toEqual([otherTag, tag]);
  expect(await read(`/conversations/${conversation.id}`)).toEqual(body);
});

test('custom fields and tags that are sent take the place of what there was', async () => {
  const { send, conversation, tag } = await startMessaging();
  const path = `/conversations/${conversation.id}`;
  await send('PATCH', path, { custom_fields: { a: 1 }, tag_ids: [tag] });
  const { body } = await send('PATCH', path, { custom_fields: { b: 2 }, tag_ids: [] });
  expect(body.custom_fields).toEqual({ b: 2 });
  expect(body.tags).toEqual([]);
});

test('a body cannot set what the service makes of it', async () => {
  const { send, conversation } = await startMessaging();
  const { status, body } = await send('PATCH', `/conversations/${conversation.id}`, {
    id: 'cnv_mine',
    is_private: true,
    created_at: 1,
    recipient: null,
    inbox: 'mine',
    tags: 'none',
    links: 7,
    last_message: {},
    reminders: 'soon',
    _links: {},
  });
  expect(status).toBe(200);
  expect(body).toEqual({ ...conversation, updated_at: NOW });
});

test('a conversation is archived, opened again, and assigned when it has an assignee', async () => {
  const { send, conversation, teammate } = await startMessaging();
  const patch = async (body: object) => (await send('PATCH', `/conversations/${conversation.id}`, body)).body;
  expect(await patch({ status: 'unassigned' })).toMatchObject({ status: 'unassigned', assignee: null });
  expect(await patch({ assignee_id: teammate.id })).toMatchObject({ status: 'assigned' });
  expect(await patch({ status: 'archived' })).toMatchObject({
    status: 'archived',
    assignee: { id: teammate.id },
  });
  expect(await patch({ status: 'open' })).toMatchObject({ status: 'assigned' });
  expect(await patch({ assignee_id: null })).toMatchObject({ status: 'unassigned', assignee: null });
  expect(await patch({ status: 'archived' })).toMatchObject({ status: 'archived' });
  expect(await patch({ status: 'open' })).toMatchObject({ status: 'unassigned' });
});

test('a conversation is assigned to a teammate, and to no one', async () => {
  const { read, send, conversation, company } = await startMessaging();
  const path = `/conversations/${conversation.id}`;
  await send('PATCH', path, { status: 'unassigned' });
  const teammate = at(company.teammates, 2);
  const assigned = await send('PUT', `${path}/assignee`, { assignee_id: teammate.id });
  expect(assigned.status).toBe(200);
  expect(assigned.body).toMatchObject({ status: 'assigned', assignee: { id: teammate.id } });
  expect(await read(path)).toEqual(assigned.body);
  const unassigned = await send('PUT', `${path}/assignee`, { assignee_id: null });
  expect(unassigned.body).toMatchObject({ status: 'unassigned', assignee: null });
});

test('each teammate has one reminder of a conversation, which can be moved and cancelled', async () => {
  const { read, send, conversation, company } = await startMessaging();
  const [one, two] = [at(company.teammates, 0).id, at(company.teammates, 1).id];
  const path = `/conversations/${conversation.id}`;
  const remind = (teammate_id: string, scheduled_at: number | null) =>
    send('PATCH', `${path}/reminders`, { teammate_id, scheduled_at });
  const first = await remind(one, NOW + 60);
  expect(first.status).toBe(200);
  expect(first.body.reminders).toEqual([{ teammate_id: one, scheduled_at: NOW + 60 }]);
  await remind(two, NOW + 90.5);
  const moved = await remind(one, NOW + 120);
  expect(moved.body.reminders).toEqual([
    { teammate_id: two, scheduled_at: NOW + 90.5 },
    { teammate_id: one, scheduled_at: NOW + 120 },
  ]);
  const cancelled = await remind(two, null);
  expect(cancelled.body.reminders).toEqual([{ teammate_id: one, scheduled_at: NOW + 120 }]);
  expect(await read(path)).toEqual(cancelled.body);
});

test('a reminder in the past is refused, to the moment', async () => {
  const { send, conversation, teammate } = await startMessaging();
  const remind = async (scheduled_at: number) =>
    (
      await send('PATCH', `/conversations/${conversation.id}/reminders`, {
        teammate_id: teammate.id,
        scheduled_at,
      })
    ).status;
  expect(await remind(NOW - 1)).toBe(422);
  expect(await remind(NOW)).toBe(422);
  expect(await remind(NOW + 0.001)).toBe(200);
});

test('an unknown or foreign conversation is 404 on every route, and changes nothing elsewhere', async () => {
  const { read, statusOf, foreign, tag, teammate } = await startMessaging();
  const link = at((await read<List<{ id: string }>>('/links'))._results, 0);
  for (const id of ['cnv_none', foreign.conversation]) {
    const path = `/conversations/${id}`;
    expect(await statusOf('GET', path)).toBe(404);
    expect(await statusOf('PATCH', path, { subject: 'x' })).toBe(404);
    expect(await statusOf('PUT', `${path}/assignee`, { assignee_id: teammate.id })).toBe(404);
    expect(
      await statusOf('PATCH', `${path}/reminders`, { teammate_id: teammate.id, scheduled_at: null }),
    ).toBe(404);
    for (const method of ['POST', 'DELETE']) {
      expect(await statusOf(method, `${path}/tags`, { tag_ids: [tag] })).toBe(404);
      expect(await statusOf(method, `${path}/links`, { link_ids: [link.id] })).toBe(404);
    }
    expect(await statusOf('GET', `${path}/messages`)).toBe(404);
    expect(await statusOf('POST', `${path}/messages`, { body: 'x' })).toBe(404);
  }
});

test('ids in a body that are unknown or foreign are 422, and nothing changes', async () => {
  const { read, statusOf, foreign, conversation } = await startMessaging();
  const path = `/conversations/${conversation.id}`;
  for (const sent of [
    { subject: 'no', assignee_id: 'tea_none' },
    { subject: 'no', assignee_id: foreign.teammate },
    { subject: 'no', inbox_id: 'inb_none' },
    { subject: 'no', inbox_id: foreign.inbox },
    { subject: 'no', tag_ids: ['tag_none'] },
    { subject: 'no', tag_ids: [foreign.tag] },
  ]) {
    expect(await statusOf('PATCH', path, sent), JSON.stringify(sent)).toBe(422);
  }
  for (const assignee_id of ['tea_none', foreign.teammate]) {
    expect(await statusOf('PUT', `${path}/assignee`, { assignee_id })).toBe(422);
  }
  expect(
    await statusOf('PATCH', `${path}/reminders`, { teammate_id: foreign.teammate, scheduled_at: NOW + 9 }),
  ).toBe(422);
  expect(await read(path)).toEqual(conversation);
});

test('what is wrong is refused: a status, a state, a type, no object, no JSON, another method', async () => {
  const { send, service, token, statusOf, conversation, teammate } = await startMessaging();
  const path = `/conversations/${conversation.id}`;
  const refused = await send<Record<string, unknown>>('PATCH', path, { status: 'asleep' });
  expect(refused.status).toBe(422);
  expect(refused.body).toMatchObject({ _error: { status: 422, message: expect.stringContaining('status') } });
  expect(await statusOf('PATCH', path, { status: 'unassigned', assignee_id: teammate.id })).toBe(422);
  expect(await statusOf('PATCH', path, { status: 'assigned', assignee_id: null })).toBe(422);
  expect(await statusOf('PATCH', path, { subject: 7 })).toBe(422);
  expect(await statusOf('PATCH', path, ['subject'])).toBe(400);
  expect(await statusOf('PUT', `${path}/assignee`, {})).toBe(422);
  expect(await statusOf('PATCH', `${path}/reminders`, { teammate_id: teammate.id })).toBe(422);
  expect(await statusOf('PATCH', `${path}/reminders`, { scheduled_at: NOW + 5 })).toBe(422);
  const noJson = await service.api(path, token, { method: 'PATCH', body: '{"subject":' });
  expect(noJson.status).toBe(400);
  expect(await statusOf('DELETE', path)).toBe(405);
  expect(await statusOf('POST', `${path}/assignee`, { assignee_id: null })).toBe(405);
  expect(await statusOf('GET', `${path}/reminders`)).toBe(405);
  const wrongMethod = await service.api(path, token, { method: 'DELETE' });
  expect(wrongMethod.headers.get('allow')).toBe('GET, PATCH');
});
