import { expect, test } from 'vitest';
import { expectGuarded } from '../sandbox/support/guarded.ts';
import { type Conversation, type List, startMessaging } from '../sandbox/support/messaging.ts';
import { at, startFrozen } from '../sandbox/support/test-sandbox.ts';

const search = (query: string, limit = 100) =>
  `/conversations/search/${encodeURIComponent(query)}?limit=${limit}`;

async function start() {
  const parts = await startMessaging();
  return {
    ...parts,
    find: async (query: string) =>
      (await parts.read<List<Conversation>>(search(query)))._results.map(({ id }) => id),
  };
}

test('a word is found in the subject, the recipient, a tag’s name and the last message', async () => {
  const { send, find, conversations, tag } = await start();
  const [bySubject, byTag, byMessage, byRecipient] = [0, 1, 2, 3].map((place) => at(conversations, place));
  if (!bySubject || !byTag || !byMessage || !byRecipient) throw new Error('too few');
  await send('PATCH', `/conversations/${bySubject.id}`, { subject: 'Zylophon Größe' });
  expect(await find('zylophon')).toEqual([bySubject.id]);
  await send('PATCH', `/tags/${tag}`, { name: 'Quagmire' });
  await send('POST', `/conversations/${byTag.id}/tags`, { tag_ids: [tag] });
  expect(await find('quagmire')).toEqual([byTag.id]);
  await send('POST', `/conversations/${byMessage.id}/messages`, { text: 'the wombat is here' });
  expect(await find('wombat')).toEqual([byMessage.id]);
  expect(await find(byRecipient.recipient.handle)).toContain(byRecipient.id);
  expect(await find(byRecipient.recipient.name)).toContain(byRecipient.id);
});

test('all words must occur, in any case, order and place, also as parts of words', async () => {
  const { send, find, conversations } = await start();
  const { id, recipient } = at(conversations, 5);
  await send('PATCH', `/conversations/${id}`, { subject: 'Xylograph ÜBERFÄLLIG 50% a/b' });
  expect(await find('xylo')).toEqual([id]);
  expect(await find('überfällig  XYLOGRAPH')).toEqual([id]);
  expect(await find('überfällig xylo'.normalize('NFD'))).toEqual([id]);
  expect(await find(`xylograph ${recipient.handle}`)).toEqual([id]);
  expect(await find('50% a/b xylo')).toEqual([id]);
  expect(await find('xylograph absent')).toEqual([]);
});

test('what is found comes in pages, each with all that a conversation is', async () => {
  const { service, read, conversations, token } = await start();
  const { body: first } = await service.call<List<Conversation>>('GET', search('@', 7), token);
  const all = [...first._results];
  expect(all).toHaveLength(7);
  for (let { next } = first._pagination; next !== null; ) {
    const page: List<Conversation> = await read(next);
    all.push(...page._results);
    next = page._pagination.next;
  }
  expect(all).toEqual(conversations);
});

test('a search looks at a part of very many conversations for each page: empty ones are no end', async () => {
  const service = await startFrozen();
  const company = await service.company({ conversations: 45_000 });
  const token = at(company.api_tokens, 0).token;
  const { body } = await service.call<List<Conversation>>('GET', '/conversations?limit=1', token);
  const { id } = at(body._results, 0);
  let next: string | null = search('order_that_no_one_has');
  let pages = 0;
  while (next !== null) {
    const page: List<Conversation> = (await service.call<List<Conversation>>('GET', next, token)).body;
    expect(page._results).toEqual([]);
    next = page._pagination.next;
    pages += 1;
  }
  expect(pages).toBe(3);
  expect((await service.call('GET', `/conversations/${id}`, token)).status).toBe(200);
});

test('a query that looks like another route is a search all the same; one without words is 400', async () => {
  const { send, statusOf, find, conversation } = await start();
  await send('PATCH', `/conversations/${conversation.id}`, { subject: 'about messages' });
  expect(await find('about messages')).toEqual([conversation.id]);
  const answer = await send<Record<string, unknown>>('GET', '/conversations/search/messages');
  expect(answer.headers.get('x-service-tier')).toBe('search');
  expect(answer.body).toHaveProperty('_results');
  expect(await statusOf('GET', '/conversations/search/%20')).toBe(400);
  expect(await statusOf('GET', '/conversations/search/')).toBe(404);
  expect(await statusOf('DELETE', '/conversations/search/x')).toBe(405);
  expect(await statusOf('GET', '/conversations/search/x?limit=101')).toBe(400);
});

test('searches count together, whatever they look for: 40% of the rate limit', async () => {
  const service = await startFrozen();
  const company = await service.company({ plan: 'professional' });
  const token = at(company.api_tokens, 0).token;
  const get = (path: string) => () => service.call('GET', path, token);
  await expectGuarded(service, {
    tier: 'search',
    limit: 40,
    windowMs: 60_000,
    send: [get('/conversations/search/one'), get('/conversations/search/two?limit=3')],
    apart: [get('/conversations')],
  });
});
