import { describe, expect, test } from 'vitest';
import { type Document, type List, startOpen } from './support/routes.ts';
import { START_MS } from './support/test-sandbox.ts';

const ADA = {
  id: 'ada',
  name: 'Ada 🧮',
  handles: [{ handle: 'Ada@Engine.example', source: 'email', since: 1833 }],
  custom_fields: { ratio: 0.1, nested: [{ deep: [null, '\u2028', 1e21] }] },
  loves: { numbers: ['Bernoulli'], '': false },
};
const TALK = {
  id: 'talk.1',
  subject: 'Engine',
  recipient: { handle: 'ada@engine.example', contact_id: 'ada' },
  tags: [{ id: 'tag_x', name: 'Note G' }],
};
const LISTS = {
  contacts: [ADA, { name: 'Given id' }, { id: 'bob', updated_at: 7.25 }],
  conversations: [TALK, {}],
};

const start = (spec: object = LISTS) => startOpen(spec);

const idsIn = (records: Document[]) => records.map(({ id }) => id);

describe('literal records of a company', () => {
  test('Members are read back to the byte, in a list and by id', async () => {
    const { list, read, service } = await start();
    const [first] = await list('/contacts');
    const { _links, ...members } = await read('/contacts/ada');
    expect(_links).toEqual({ self: `${service.sandbox.apiUrl}/contacts/ada` });
    expect(first).toEqual({ _links, ...members });
    for (const [name, value] of Object.entries(ADA)) {
      expect(JSON.stringify(members[name])).toBe(JSON.stringify(value));
    }
  });

  test('Members that a record needs are made up, ids are given out', async () => {
    const { list, company, service } = await start();
    const [, given, bob] = await list('/contacts');
    expect(given).toMatchObject({ id: expect.stringMatching(/^crd_\w{12}$/), handles: [], groups: [] });
    expect(bob).toMatchObject({ id: 'bob', name: '', updated_at: 7.25, is_private: false });
    const [talk, empty] = await list('/conversations');
    expect(talk?.recipient).toMatchObject({
      _links: { related: { contact: `${service.sandbox.apiUrl}/contacts/ada` } },
    });
    expect(empty).toMatchObject({ status: 'unassigned', recipient: null, inbox: { id: company.inboxes[0] } });
    expect(await list(`/conversations/${empty?.id}/messages`)).toEqual([]);
  });

  test('Pages, changes, deletions and snapshots know chosen ids', async () => {
    const { list, read, send, service, company } = await start();
    const page = await read<List>('/contacts?limit=2');
    expect(idsIn((await read<List>(page._pagination.next ?? ''))._results)).toEqual(['bob']);
    const { id } = await service.done<{ id: string }>('snapshot', {});
    await service.done(`companies/${company.id}/records`, { resource: 'contacts', delete: 3, create: 1 });
    await send('PATCH', '/conversations/talk.1', { subject: 'Changed' });
    const [created, ...others] = idsIn(await list('/contacts'));
    expect([created, others]).toEqual([expect.stringMatching(/^crd_/), []]);
    expect((await send('GET', '/contacts/ada')).status).toBe(404);
    expect(await read('/conversations/talk.1')).toMatchObject({ subject: 'Changed' });
    await service.done('restore', { id });
    expect(idsIn(await list('/contacts'))).toEqual(['ada', expect.any(String), 'bob']);
    expect(await read('/conversations/talk.1')).toMatchObject({ subject: 'Engine' });
  });

  test('A message from a handle belongs to the contact that has it, and a reply needs somebody', async () => {
    const { list, send, company } = await start();
    const body = { sender: { handle: 'ADA@engine.example' }, body: 'Hello' };
    await send('POST', `/channels/${company.channels[0]}/incoming_messages`, body);
    expect(idsIn(await list('/contacts'))).toHaveLength(3);
    const [begun, , empty] = await list('/conversations');
    expect(begun).toMatchObject({ recipient: { name: ADA.name }, last_message: { excerpt: 'Hello' } });
    expect((await send('POST', `/conversations/${empty?.id}/messages`, { body: 'x' })).status).toBe(422);
    const reply = await send('POST', '/conversations/talk.1/messages', { body: 'Hello yourself' });
    expect(reply).toMatchObject({ status: 201, body: { created_at: START_MS / 1000 } });
    expect(await list('/conversations/talk.1/messages')).toHaveLength(1);
  });
});

describe('other resources of a company', () => {
  const contents = { fr: { name: 'Aide', note: 1 } };
  const SEED = {
    teammates: [{ id: 'tea_eve' }, { id: 'tea_ada', is_admin: true }].map((one) => ({
      name: 'Eve Of Two',
      ...one,
    })),
    inboxes: [
      { id: 'inb_own', name: 'Own', is_private: true, teammate_id: 'tea_ada' },
      { id: 'inb_all', name: 'All', colour: 'red' },
    ],
    tags: [
      { id: 'tag_top', name: 'Top' },
      { id: 'tag_sub', name: 'Sub', parent_tag_id: 'tag_top' },
    ],
    channels: [
      { id: 'cha_x', name: 'X' },
      { name: 'Y', inbox_id: 'inb_own' },
    ],
    responses: [{ id: 'rsp_x', name: 'Hello', body: '<p>Hi</p>' }],
    accounts: [{ id: 'acc_x', name: 'Big', domains: ['engine.example'] }],
    links: [{ id: 'lnk_x', name: 'Order' }],
    knowledge_bases: [{ id: 'knb_x', default_locale: 'fr', contents }],
    articles: [{ id: 'kba_x', contents: { fr: { subject: 'Bonjour', author_id: 'tea_eve' } } }],
    contacts: [ADA],
    conversations: [TALK, {}],
    messages: [
      { id: 'msg_1', conversation_id: 'talk.1', body: '<p>How  are you?</p>', created_at: 9 },
      { conversation_id: 'talk.1', text: 'a < b', is_inbound: false },
    ],
  };

  test('Each record is as it was given, in its place, with what it needs', async () => {
    const { list, read, send, service, company } = await start(SEED);
    const all = async (path: string) => (await list(path)).map(({ _links, ...record }) => record);
    for (const path of [
      'teammates',
      'inboxes',
      'tags',
      'channels',
      'responses',
      'accounts',
      'links',
    ] as const) {
      expect(await all(`/${path}`), path).toMatchObject(SEED[path]);
    }
    expect((await all('/teammates'))[0]).toMatchObject({
      ...{ first_name: 'Eve', last_name: 'Of Two', username: 'eve.of.two', email: 'eve.of.two@team.example' },
    });
    expect(await all('/tags/tag_top/children')).toMatchObject([SEED.tags[1] as object]);
    expect(await all('/inboxes/inb_all/channels')).toMatchObject([{ id: 'cha_x', type: 'custom' }]);
    expect(idsIn(await list('/accounts/acc_x/contacts'))).toEqual(['ada']);
    expect(await all('/knowledge_bases/knb_x/articles')).toMatchObject([
      { id: 'kba_x', locale: 'fr', subject: 'Bonjour', status: 'draft', content: '' },
    ]);
    expect(await read('/knowledge_bases/knb_x')).toMatchObject({ name: 'Aide', note: 1, locales: ['fr'] });
    expect(await all('/conversations/talk.1/messages')).toMatchObject([
      { text: 'How are you?', blurb: 'How are you?', is_inbound: true, created_at: 9, message_uid: 'mui_1' },
      { body: 'a &lt; b', is_inbound: false },
    ]);
    expect(await read('/conversations/talk.1')).toMatchObject({
      ...{ inbox: { id: 'inb_all' }, last_message: { excerpt: 'a < b', is_inbound: false } },
    });
    const reply = await send('POST', '/conversations/talk.1/messages', { body: 'x', channel_id: 'cha_x' });
    expect(reply.status).toBe(201);
    expect(await list('/conversations/talk.1/messages')).toHaveLength(3);
    expect(service.sandbox.tokens(undefined, company).access_token, 'by the second teammate').toMatch(/^at_/);
  });

  test.each([
    [{ teammates: [{ name: 'Eve' }] }, 'teammates: need one with is_admin'],
    [{ inboxes: [] }, 'inboxes: need one that is not private'],
    [{ tags: [{}] }, 'tags.0.name: '],
    [{ messages: [{ conversation_id: 'x' }] }, 'messages: need the conversations'],
    [
      { conversations: [{}], messages: [{ conversation_id: 'x' }] },
      'messages: 0.conversation_id: there is no x',
    ],
    [{ channels: [{ name: 'x', inbox_id: 'x' }] }, 'channels: 0.inbox_id: there is no x'],
    [
      { knowledge_bases: [{ default_locale: 'fr', contents: { en: { name: 'x' } } }] },
      'needs the default locale',
    ],
    [{ knowledge_bases: [], articles: [{ contents: { en: { subject: 'x' } } }] }, 'there is no record that'],
    [
      { teammates: [{ id: 'tea_known', name: 'Eve', is_admin: true }] },
      'tea_known is one of another company',
    ],
    [{ articles: [{ contents: {} }] }, 'articles.0.contents: needs a locale'],
  ])('%j is refused', async (spec, message) => {
    const { service } = await start({ teammates: [{ id: 'tea_known', name: 'Eve', is_admin: true }] });
    expect(() => service.sandbox.company({ name: 'Other', plan: 'starter', ...spec })).toThrow(message);
  });

  test('An article has its own knowledge base’s default locale, and the newest message is the last', async () => {
    const base = (id: string, locale: string) => ({
      ...{ id, default_locale: locale, contents: { [locale]: { name: id } } },
    });
    const { read } = await start({
      knowledge_bases: [base('knb_en', 'en'), base('knb_de', 'de')],
      articles: [{ id: 'kba_de', knowledge_base_id: 'knb_de', contents: { de: { subject: 'Hallo' } } }],
      conversations: [TALK],
      messages: [2, 1].map((created_at) => ({ conversation_id: TALK.id, text: `${created_at}`, created_at })),
    });
    expect(await read('/knowledge_base_articles/kba_de')).toMatchObject({
      default_locale: 'de',
      subject: 'Hallo',
    });
    expect(await read('/conversations/talk.1')).toMatchObject({ last_message: { excerpt: '2' } });
  });

  test('Without tags and replaced teammates, generated conversations name who is there', async () => {
    const { list } = await start({
      tags: [],
      teammates: SEED.teammates,
      inboxes: SEED.inboxes,
      conversations: 40,
    });
    const conversations = await list('/conversations');
    expect(new Set(conversations.map(({ inbox }) => (inbox as Document).id))).toEqual(new Set(['inb_all']));
    expect(new Set(conversations.map(({ tags }) => (tags as unknown[]).length))).toEqual(new Set([0]));
  });
});

describe('chosen ids and tokens of a company', () => {
  test('A company has the id and the tokens that were chosen, beside its own two', async () => {
    const { service } = await start();
    const api_tokens = [{ token: 'api_acme', scopes: ['shared_resources:read'] }];
    const acme = await service.company({ id: 'cmp_acme', api_tokens });
    expect(acme).toMatchObject({ id: 'cmp_acme', api_tokens: [{}, {}, api_tokens[0]] });
    expect(await service.call('GET', '/me', 'api_acme')).toMatchObject({ body: { id: 'cmp_acme' } });
    expect(await service.call('PATCH', `/tags/${acme.tags[0]}`, 'api_acme', {})).toMatchObject({
      status: 403,
    });
  });

  const token = { token: 'api_taken', scopes: ['shared_resources'] };
  test.each([
    [{ id: 'cmp_taken' }, 'id: there is a company cmp_taken already'],
    [{ id: 'no blank' }, 'id: must be'],
    [{ api_tokens: [token] }, 'api_tokens: api_taken is'],
    [
      {
        api_tokens: [
          { ...token, token: 'twice' },
          { ...token, token: 'twice' },
        ],
      },
      'api_tokens: twice is',
    ],
    [{ api_tokens: [{ ...token, token: 'a b' }] }, 'api_tokens.0.token: must be'],
    [{ contacts: [{ id: 'a' }, { id: 'a' }] }, 'The id a is'],
    [{ contacts: [{}, { name: 7 }] }, 'contacts: 1.name: '],
    [{ contacts: [{ id: '../x' }] }, '0.id: must be'],
    [{ contacts: 'many' }, 'contacts: must be a number up to 10000000, or a list of records'],
    [{ conversations: [{ tags: ['x'] }] }, 'conversations: 0.tags.0: '],
  ])('%j is refused', async (spec, message) => {
    const { service } = await start({ id: 'cmp_taken', api_tokens: [token], contacts: 0 });
    const { companies } = await service.state();
    const answer = await service.control('companies', { name: 'Other', plan: 'starter', ...spec });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain(message);
    expect((await service.state()).companies).toHaveLength(companies.length);
  });
});
