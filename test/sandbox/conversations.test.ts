import { describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { type Conversation, idsOf, startMessaging } from './support/messaging.ts';
import { filled, goodBody, type Request } from './support/routes.ts';
import { at, START_MS } from './support/test-sandbox.ts';

const NOW = START_MS / 1000;

const search = (query: string) => `/conversations/search/${encodeURIComponent(query)}?limit=100`;

/** A conversation without tags, and requests to every route of conversations, messages, channels and inboxes. */
async function start() {
  const parts = await startMessaging();
  const { company, teammate, tag: tag_id, conversation, channel: channel_id, inbox: inbox_id } = parts;
  const path = `/conversations/${conversation.id}`;
  const { body: untagged } = await parts.send<Conversation>('PATCH', path, { tag_ids: [] });
  const link_id = at(company.links, 0);
  const named = { tag_id, link_id, teammate_id: teammate.id, channel_id, inbox_id };
  const requests = (ids: Record<string, string>) =>
    ROUTES.filter(([, route]) => /:(conversation|message|channel|inbox)_id/.test(route.path)).map(
      ([, route]) => [route.method, filled(route.path, ids), { ...goodBody(route, named) }] as const,
    );
  return {
    ...parts,
    ...{ path, untagged, link: link_id, requests },
    /** Changes the conversation, each time with this status; then it shows this, also when it is read again. */
    walk: async (steps: [status: number, method: string, below: string, body: object, shown?: object][]) => {
      for (const [status, method, below, body, shown] of steps) {
        const before = await parts.read(path);
        const answer = await parts.send(method, `${path}${below}`, body);
        expect([method, below, body, answer.status]).toEqual([method, below, body, status]);
        if (shown) expect(answer.body).toMatchObject(shown);
        expect(await parts.read(path)).toEqual(shown ? answer.body : before);
      }
    },
    /** A request for each of these members that a route takes in its body. */
    requestsNaming: (members: Record<string, unknown>) =>
      requests({ conversation_id: conversation.id, channel_id, inbox_id }).flatMap(([method, path, good]) =>
        Object.entries(members)
          .filter(([member]) => member in good)
          .map(([member, value]): Request => [method, path, { ...good, [member]: value }]),
      ),
  };
}

describe('Endpoints: routes (our choice)', () => {
  test('A changed conversation is read back as sent, but for what only the service sets', async () => {
    const { read, send, service, path, untagged, otherInbox, tag, otherTag, teammate } = await start();
    service.advance(3_000);
    const sent = { subject: 'Größe „M“ ✅', custom_fields: { order: [1, { deep: null }] }, of_ours: 'kept' };
    const ids = { inbox_id: otherInbox, assignee_id: teammate.id, tag_ids: [otherTag, tag, tag] };
    const forged = { id: 'mine', is_private: true, created_at: 1, recipient: null, links: 7, _links: {} };
    const all = { ...sent, ...ids, ...forged, last_message: {}, reminders: 1 };
    const { body } = await send<Conversation>('PATCH', path, all);
    const assignee = { id: teammate.id, name: teammate.name };
    const shown = { inbox: { id: otherInbox }, assignee, tags: [{ id: otherTag }, { id: tag }] };
    expect(body).toMatchObject({ ...untagged, ...sent, ...shown, status: 'assigned', updated_at: NOW + 3 });
    expect(body.reminders).toBeUndefined();
    expect(await read(path)).toEqual(body);
    const replaced = await send('PATCH', path, { custom_fields: { b: 2 }, tag_ids: [] });
    expect(replaced.body).toEqual({ ...body, custom_fields: { b: 2 }, tags: [] });
  });

  test('An open conversation is assigned or unassigned, as its assignee says', async () => {
    const { walk, teammate } = await start();
    const { id } = teammate;
    await walk([
      [200, 'PATCH', '', { status: 'unassigned' }, { status: 'unassigned', assignee: null }],
      [200, 'PATCH', '', { assignee_id: id }, { status: 'assigned', assignee: { id } }],
      [200, 'PATCH', '', { status: 'archived' }, { status: 'archived', assignee: { id } }],
      [200, 'PATCH', '', { status: 'open' }, { status: 'assigned', assignee: { id } }],
      [200, 'PUT', '/assignee', { assignee_id: null }, { status: 'unassigned', assignee: null }],
      [200, 'PATCH', '', { status: 'spam' }, { status: 'spam', assignee: null }],
      [200, 'PUT', '/assignee', { assignee_id: id }, { status: 'spam', assignee: { id } }],
      [200, 'PATCH', '', { assignee_id: null, status: 'open' }, { status: 'unassigned', assignee: null }],
      [422, 'PATCH', '', { status: 'unassigned', assignee_id: id }],
      [422, 'PATCH', '', { status: 'assigned' }],
    ]);
  });

  test('A teammate has one reminder of a conversation, to move or cancel, never past', async () => {
    const { walk, company } = await start();
    const reminder = (teammate_id?: string) => (after: number) => ({
      teammate_id,
      scheduled_at: NOW + after,
    });
    const [one, two] = [reminder(company.teammates[0]?.id), reminder(company.teammates[1]?.id)];
    await walk([
      [200, 'PATCH', '/reminders', one(0.001), { reminders: [one(0.001)] }],
      [200, 'PATCH', '/reminders', two(90.5), { reminders: [one(0.001), two(90.5)] }],
      [422, 'PATCH', '/reminders', one(0)],
      [200, 'PATCH', '/reminders', one(120), { reminders: [two(90.5), one(120)] }],
      [200, 'PATCH', '/reminders', { ...two(0), scheduled_at: null }, { reminders: [one(120)] }],
    ]);
  });

  test('Tags and links are put on a conversation once each, and taken off again', async () => {
    const { walk, send, tag, otherTag, link } = await start();
    const other = (await send('POST', '/links', { name: 'Order 5' })).body.id;
    for (const [kind, member, one, two] of [
      ['tags', 'tag_ids', tag, otherTag],
      ['links', 'link_ids', link, other],
    ] as const) {
      const [ofOne, ofTwo] = [{ id: one }, { id: two }];
      await walk([
        [200, 'POST', `/${kind}`, { [member]: [one] }, { [kind]: [ofOne] }],
        [200, 'POST', `/${kind}`, { [member]: [one, two, one] }, { [kind]: [ofOne, ofTwo] }],
        [200, 'DELETE', `/${kind}`, { [member]: [one] }, { [kind]: [ofTwo] }],
        [200, 'DELETE', `/${kind}`, { [member]: [one] }, { [kind]: [ofTwo] }],
      ]);
    }
  });

  test('A private tag goes only onto what is in an inbox of the same teammate', async () => {
    const { walk, untagged, tag, privateTag, inbox, privateInbox } = await start();
    await walk([
      [422, 'POST', '/tags', { tag_ids: [privateTag] }],
      [422, 'PATCH', '', { tag_ids: [privateTag] }],
      [200, 'PATCH', '', { inbox_id: privateInbox }, { is_private: true }],
      [422, 'POST', '/tags', { tag_ids: [tag] }],
      [200, 'POST', '/tags', { tag_ids: [privateTag] }, { tags: [{ id: privateTag }] }],
      [422, 'PATCH', '', { inbox_id: inbox }],
      [200, 'PATCH', '', { inbox_id: inbox, tag_ids: [] }, { ...untagged }],
    ]);
  });

  test('A body that names what another company has is 422, and nothing changes', async () => {
    const { service, read, expectStatus, path, untagged, counts, tag, link, ...its } = await start();
    const other = service.company();
    const before = counts();
    const [inbox_id, channel_id] = [at(other.inboxes, 0), at(other.channels, 0)];
    const { id } = at(other.teammates, 0);
    const teammates = { assignee_id: id, author_id: id, teammate_id: id };
    const lists = { tag_ids: [tag, other.tags[0]], link_ids: [link, other.links[0]] };
    await expectStatus(422, its.requestsNaming({ inbox_id, channel_id, ...teammates, ...lists }));
    expect([await read(path), counts()]).toEqual([untagged, before]);
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
    const { api_tokens } = service.company({ conversations: 45_000 });
    const walked = await pages(search('order_that_no_one_has'), at(api_tokens, 0).token);
    expect(walked.map(({ _results }) => _results)).toEqual([[], [], []]);
  });
});

describe('Authentication', () => {
  test('9. OAuth tokens reach nothing in a private inbox, nor can a body name it', async () => {
    const { service, company, list, expectStatus, path, untagged, ...its } = await start();
    const { access_token } = service.install(company);
    const channel = await its.addChannel(its.privateInbox);
    const ids = { conversation_id: untagged.id, inbox_id: its.privateInbox, channel_id: channel };
    await expectStatus(403, its.requestsNaming({ ...ids, tag_ids: [its.privateTag] }), access_token);
    await expectStatus(200, [['PATCH', path, { inbox_id: its.privateInbox }]]);
    const message = at(await its.messagesOf(untagged.id), 0);
    for (const message_id of [message.id, message.message_uid]) {
      await expectStatus(403, its.requests({ ...ids, message_id }), access_token);
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
