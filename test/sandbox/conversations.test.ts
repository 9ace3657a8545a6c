import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ROUTES } from '../../src/contract/api/api.ts';
import { ann, type Conversation, idsOf, type Request, startMessaging } from './support/messaging.ts';
import { filled } from './support/routes.ts';
import { at, START_MS } from './support/test-sandbox.ts';

const NOW = START_MS / 1000;
const TALK = ROUTES.map(([, route]) => route).filter(({ path }) =>
  /:(conversation|message|channel|inbox)_id/.test(path),
);

const search = (query: string) => `/conversations/search/${encodeURIComponent(query)}?limit=100`;

/** A conversation without tags, and requests to every route of conversations, messages, channels and inboxes. */
async function start() {
  const parts = await startMessaging();
  const { teammate, tag, link, conversation, channel, inbox } = parts;
  const path = `/conversations/${conversation.id}`;
  const { body: untagged } = await parts.send('PATCH', path, { tag_ids: [] });
  const message = { sender: ann, to: ['ann'], text: 'x', type: 'custom' };
  const reminder = { assignee_id: teammate.id, teammate_id: teammate.id, scheduled_at: null };
  const good = { ...message, ...reminder, tag_ids: [tag], link_ids: [link] };
  const own = { conversation_id: conversation.id, channel_id: channel, inbox_id: inbox };
  return {
    ...parts,
    path,
    untagged,
    requestsAt: (ids: Record<string, string>) =>
      TALK.map(({ method, path }): Request => [method, filled(path, ids), good]),
    /** A request for each of these members that a route takes in its body. */
    requestsNaming: (named: Record<string, unknown>) =>
      TALK.flatMap(({ method, path, body }) =>
        Object.entries(named)
          .filter(([member]) => body instanceof z.ZodObject && member in body.shape)
          .map(([member, value]): Request => [method, filled(path, own), { ...good, [member]: value }]),
      ),
  };
}

describe('Endpoints: routes (our choice)', () => {
  test('A changed conversation is read back as sent, but for what only the service sets', async () => {
    const { read, send, service, path, untagged, otherInbox, tag, otherTag, teammate } = await start();
    await service.advance(3_000);
    const sent = { subject: 'Größe „M“ ✅', custom_fields: { order: [1, { deep: null }] }, of_ours: 'kept' };
    const ids = { inbox_id: otherInbox, assignee_id: teammate.id, tag_ids: [otherTag, tag, tag] };
    const forged = { id: 'mine', is_private: true, created_at: 1, recipient: null, links: 7, _links: {} };
    const { body } = await send('PATCH', path, {
      ...sent,
      ...ids,
      ...forged,
      last_message: {},
      reminders: 1,
    });
    const assignee = { id: teammate.id, name: teammate.name };
    const shown = { inbox: { id: otherInbox }, assignee, tags: [{ id: otherTag }, { id: tag }] };
    expect(body).toMatchObject({ ...untagged, ...sent, ...shown, status: 'assigned', updated_at: NOW + 3 });
    expect(body.reminders).toBeUndefined();
    expect(await read(path)).toEqual(body);
    const replaced = await send('PATCH', path, { custom_fields: { b: 2 }, tag_ids: [] });
    expect(replaced.body).toEqual({ ...body, custom_fields: { b: 2 }, tags: [] });
  });

  test('An open conversation is assigned or unassigned, as its assignee says', async () => {
    const { read, send, expectStatus, path, teammate } = await start();
    const { id } = teammate;
    for (const [method, below, change, status, assignee] of [
      ['PATCH', '', { status: 'unassigned' }, 'unassigned', undefined],
      ['PATCH', '', { assignee_id: id }, 'assigned', id],
      ['PATCH', '', { status: 'archived' }, 'archived', id],
      ['PATCH', '', { status: 'open' }, 'assigned', id],
      ['PUT', '/assignee', { assignee_id: null }, 'unassigned', undefined],
      ['PATCH', '', { status: 'spam' }, 'spam', undefined],
      ['PUT', '/assignee', { assignee_id: id }, 'spam', id],
      ['PATCH', '', { assignee_id: null, status: 'open' }, 'unassigned', undefined],
    ] as const) {
      const { body } = await send(method, `${path}${below}`, change);
      expect([change, body.status, body.assignee?.id]).toEqual([change, status, assignee]);
      expect(await read(path)).toEqual(body);
    }
    for (const body of [{ status: 'unassigned', assignee_id: id }, { status: 'assigned' }]) {
      await expectStatus(422, [['PATCH', path, body]]);
    }
  });

  test('A teammate has one reminder of a conversation, to move or cancel, never past', async () => {
    const { read, send, expectStatus, path, company } = await start();
    const [one, two] = [at(company.teammates, 0).id, at(company.teammates, 1).id];
    const remind = (teammate_id: string, scheduled_at: number | null) =>
      ['PATCH', `${path}/reminders`, { teammate_id, scheduled_at }] as const;
    await expectStatus(200, [remind(one, NOW + 0.001), remind(two, NOW + 90.5)]);
    await expectStatus(422, [remind(one, NOW), remind(two, NOW - 1)]);
    const ofOne = { teammate_id: one, scheduled_at: NOW + 120 };
    const { body } = await send(...remind(one, NOW + 120));
    expect(body.reminders).toEqual([{ teammate_id: two, scheduled_at: NOW + 90.5 }, ofOne]);
    await send(...remind(two, null));
    expect((await read<Conversation>(path)).reminders).toEqual([ofOne]);
  });

  test('Tags and links are put on a conversation once each, and taken off again', async () => {
    const { read, send, path, tag, otherTag, link } = await start();
    const other = (await send<{ id: string }>('POST', '/links', { name: 'Order 5' })).body.id;
    for (const [kind, member, one, two] of [
      ['tags', 'tag_ids', tag, otherTag],
      ['links', 'link_ids', link, other],
    ] as const) {
      for (const [method, ids, left] of [
        ['POST', [one], [one]],
        ['POST', [two, one, two], [one, two]],
        ['DELETE', [one], [two]],
        ['DELETE', [one], [two]],
      ] as const) {
        const { status, body } = await send(method, `${path}/${kind}`, { [member]: ids });
        expect([status, ...idsOf(body[kind]).toSorted()]).toEqual([200, ...left.toSorted()]);
        expect(await read(path)).toEqual(body);
      }
    }
  });

  test('A private tag goes only onto what is in an inbox of the same teammate', async () => {
    const { read, expectStatus, path, untagged, tag, privateTag, inbox, privateInbox } = await start();
    for (const [status, method, below, body] of [
      [422, 'POST', '/tags', { tag_ids: [privateTag] }],
      [422, 'PATCH', '', { tag_ids: [privateTag] }],
      [200, 'PATCH', '', { inbox_id: privateInbox }],
      [422, 'POST', '/tags', { tag_ids: [tag] }],
      [200, 'POST', '/tags', { tag_ids: [privateTag] }],
      [422, 'PATCH', '', { inbox_id: inbox }],
    ] as const) {
      await expectStatus(status, [[method, `${path}${below}`, body]]);
    }
    expect(await read(path)).toMatchObject({ tags: [{ id: privateTag }], is_private: true });
    await expectStatus(200, [['PATCH', path, { inbox_id: inbox, tag_ids: [] }]]);
    expect(await read(path)).toEqual(untagged);
  });

  test('A body that names what another company has is 422, and nothing changes', async () => {
    const { read, expectStatus, path, untagged, counts, foreign, tag, link, ...its } = await start();
    const before = await counts();
    const { inbox: inbox_id, channel: channel_id, teammate } = foreign;
    const teammates = { assignee_id: teammate, author_id: teammate, teammate_id: teammate };
    const lists = { tag_ids: [tag, foreign.tag], link_ids: [link, foreign.link] };
    await expectStatus(422, its.requestsNaming({ inbox_id, channel_id, ...teammates, ...lists }));
    expect([await read(path), await counts()]).toEqual([untagged, before]);
  });

  test('A search finds the conversations in which all words of the query occur', async () => {
    const { send, list, expectStatus, conversations, tag } = await start();
    const [one, two, three] = [at(conversations, 1), at(conversations, 2), at(conversations, 3)];
    await send('PATCH', one._links.self, { subject: 'Xylograph ÜBERFÄLLIG 50% a/b' });
    await send('PATCH', `/tags/${tag}`, { name: 'Quagmire' });
    await send('POST', `${two._links.self}/tags`, { tag_ids: [tag] });
    await send('POST', `${three._links.self}/messages`, { text: 'the wombat has messages' });
    for (const [query, ...found] of [
      ['überfällig  XYLO', one.id],
      ['überfällig xylo'.normalize('NFD'), one.id],
      [`50% a/b ${one.recipient.handle} ${one.recipient.name}`, one.id],
      ['quagmire', two.id],
      ['messages', three.id],
      ['xylograph wombat'],
    ] as const) {
      expect([query, ...idsOf(await list(search(query)))]).toEqual([query, ...found]);
    }
    await expectStatus(400, [['GET', search(' ')]]);
  });
});

describe('Endpoints: pagination', () => {
  test('An empty page of a search with a next URL is not its end', async () => {
    const { service, pages } = await start();
    const { api_tokens } = await service.company({ conversations: 45_000 });
    expect(await pages(search('order_that_no_one_has'), at(api_tokens, 0).token)).toEqual([[], [], []]);
  });
});

describe('Authentication', () => {
  test('9. OAuth tokens reach nothing in a private inbox, nor can a body name it', async () => {
    const { service, company, list, expectStatus, path, untagged, ...its } = await start();
    const { access_token } = await service.install(company);
    const channel = await its.addPrivateChannel();
    const named = { inbox_id: its.privateInbox, channel_id: channel, tag_ids: [its.privateTag] };
    await expectStatus(403, its.requestsNaming(named), access_token);
    await expectStatus(200, [['PATCH', path, { inbox_id: its.privateInbox }]]);
    const message = at(await its.messagesOf(untagged.id), 0);
    const ids = { conversation_id: untagged.id, inbox_id: its.privateInbox, channel_id: channel };
    for (const message_id of [message.id, message.message_uid]) {
      await expectStatus(403, its.requestsAt({ ...ids, message_id }), access_token);
    }
    expect(await its.read(path)).toEqual({ ...untagged, inbox: expect.anything(), is_private: true });
    for (const [id, path] of [
      [untagged.id, '/conversations?limit=100'],
      [untagged.id, search(`${untagged.subject} ${untagged.recipient.handle}`)],
      [channel, '/channels'],
    ] as const) {
      expect(idsOf(await list(path))).toContain(id);
      expect(idsOf(await list(path, access_token))).not.toContain(id);
    }
  });
});
