import { expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { failureOf, startTestClient } from './test-client.ts';

const { newCompany, sandbox } = await startTestClient();

/** A company with its first shared tag. */
async function withTag() {
  const made = await newCompany();
  const tag_id = made.company.tags[0];
  if (tag_id === undefined) throw new Error('a company without tags');
  return { ...made, tag_id };
}

test('there is one method a route, and one a list to go through its pages and items', async () => {
  const { client } = await newCompany();
  const { each, pages, ...calls } = client;
  expect(Object.keys(calls)).toEqual(ROUTES.map(([operation]) => operation));
  const lists = ROUTES.filter(([, { list }]) => list).map(([operation]) => operation);
  expect(Object.keys(each)).toEqual(lists);
  expect(Object.keys(pages)).toEqual(lists);
  expect(lists).toContain('listTags');
});

test('what is sent is what the answer, and later reading, shows', async () => {
  const { client, company, tag_id, journal } = await withTag();
  const child = await client.createChildTag({ tag_id }, { name: 'Größe „Ä“ 💛', description: 'a "quote"' });
  expect(child).toMatchObject({ name: 'Größe „Ä“ 💛', description: 'a "quote"', parent_tag_id: tag_id });
  const moved = await client.updateTag({ tag_id: child.id }, { parent_tag_id: null, name: 'Moved' });
  expect(moved).toMatchObject({ id: child.id, name: 'Moved', parent_tag_id: null });
  expect(await client.getTag({ tag_id: child.id })).toEqual(moved);
  expect((await client.getIdentity()).id).toBe(company.id);
  expect((await journal()).map(({ method, status }) => `${method} ${status}`)).toEqual([
    'POST 201',
    'PATCH 200',
    'GET 200',
    'GET 200',
  ]);
});

test('the types of arguments and answers are those of the contract', async () => {
  const { client, tag_id } = await withTag();
  const wrong = async () => {
    // @ts-expect-error a tag's id is needed
    await client.createChildTag({ name: 'x' });
    // @ts-expect-error the id is not called so
    await client.getTag({ id: tag_id });
    // @ts-expect-error a new tag has a name
    await client.createChildTag({ tag_id }, { description: 'x' });
    // @ts-expect-error one tag is no list
    client.each.getTag({ tag_id });
    // @ts-expect-error a tag is read at once
    await client.getTag({ tag_id }, { respondAsync: true });
    // @ts-expect-error one tag has no pages
    await client.getTag({ tag_id }, { limit: 5 });
  };
  expect(wrong).toBeTypeOf('function');
  const name: string = (await client.getTag({ tag_id })).name;
  const first: string | undefined = (await client.listTags({ limit: 1 }))._results[0]?.name;
  expect(name).toBe(first);
});

test('a page that does not say what comes next is not taken for the last one: it is asked for again', async () => {
  const { client, fault } = await newCompany({ contacts: 3 });
  await fault({ status: 200, body: { _results: [] } });
  expect((await client.listContacts())._results.length).toBe(3);
});

test('what is put into a path stays one segment of it', async () => {
  const { client, journal } = await newCompany();
  for (const contact_id of ['../tags', 'a/b', '?limit=1', '#', '%2e%2e', 'ü &', '..%2ftags']) {
    const error = await failureOf(client.getContact({ contact_id }));
    expect(error).toMatchObject({ remedy: 'give_up', status: 404 });
    expect(error.message).toContain(contact_id);
  }
  const paths = (await journal()).map(({ path }) => path);
  expect(paths.length).toBe(7);
  expect(paths.filter((path) => !path.startsWith('/contacts/'))).toEqual([]);
});

test.each([[undefined], [''], ['.'], ['..'], [null], [{}], [true]])(
  'without a value for its path a call is refused, and nothing is sent: %s',
  async (contact_id) => {
    const { client, journal } = await newCompany();
    const error = await failureOf(client.getContact({ contact_id: contact_id as string }));
    expect(error).toMatchObject({ remedy: 'give_up', status: undefined });
    expect(error.message).toContain('contact_id');
    expect((await failureOf(client.each.listChildTags({ tag_id: '' }).next())).message).toContain('tag_id');
    expect(await journal()).toEqual([]);
  },
);

test('an id that is a number will do', async () => {
  const { client } = await newCompany();
  const error = await failureOf(client.getContact({ contact_id: 17 as unknown as string }));
  expect(error.status).toBe(404);
});

test('a list: one page, all pages, all items, each asked for as it is needed', async () => {
  const { client, journal } = await newCompany({ contacts: 45 });
  const page = await client.listContacts({ limit: 20 });
  expect(page._results.length).toBe(20);
  expect(page._pagination.next).toContain('page_token');

  const sizes: number[] = [];
  for await (const { _results } of client.pages.listContacts({ limit: 20 })) sizes.push(_results.length);
  expect(sizes).toEqual([20, 20, 5]);

  const ids = new Set<string>();
  for await (const contact of client.each.listContacts({ limit: 20 })) ids.add(contact.id);
  expect(ids.size).toBe(45);

  const before = (await journal()).length;
  for await (const contact of client.each.listContacts({ limit: 20 })) {
    if (contact.id === page._results[19]?.id) break;
  }
  expect((await journal()).length).toBe(before + 1);
});

test('a next page is asked for as it was given, and nowhere that the token must not go', async () => {
  const { client, fault, journal } = await newCompany({ contacts: 3 });
  const next = 'http://127.0.0.1:9/api/contacts?page_token=x';
  const body = { _pagination: { next }, _links: { self: next }, _results: [{ id: 'crd_1' }] };
  await fault({ status: 200, body });
  const pages = client.pages.listContacts();
  expect((await pages.next()).value?._results).toEqual([{ id: 'crd_1' }]);
  const error = await failureOf(pages.next());
  expect(error.remedy).toBe('give_up');
  expect(error.message).toContain('SERVICE_NEXT_ORIGINS');
  expect((await journal()).length).toBe(1);

  for await (const _page of client.pages.listContacts({ limit: 2 }));
  expect((await journal()).slice(1).map(({ query }) => Object.keys(query))).toEqual([
    ['limit'],
    expect.arrayContaining(['page_token']),
  ]);
});

test('a message that is answered before it is there', async () => {
  const { client, company } = await newCompany();
  const [channel_id = ''] = company.channels;
  const body = { to: ['ada@example.com'], body: 'Hello' };
  const accepted = await client.createMessage({ channel_id }, body, { respondAsync: true });
  const { message_uid }: { message_uid: string } = accepted;
  const message = await client.getMessage({ message_id: message_uid });
  expect(message).toMatchObject({ message_uid, body: 'Hello' });
  const drafted = await client.createMessage({ channel_id }, body);
  expect(drafted).toMatchObject({ is_draft: true, body: 'Hello' });
  // A message has been seen without anything being said about it.
  expect(await client.markMessageSeen({ message_id: drafted.id })).toMatchObject({ is_seen: true });
});

test('an answer that is no JSON is the text that it is', async () => {
  const { client } = await newCompany({ conversations: 2 });
  const { id: export_id } = await client.createExport({ start: 0 });
  await sandbox.advance(60_000);
  const file: string = await client.getExportFile({ export_id });
  expect(file.split('\n')[0]).toContain(',');
  expect(file.trim().split('\n').length).toBe(3);
});

test('the service judges what is sent, and its words are in the error', async () => {
  const { client, tag_id } = await withTag();
  const error = await failureOf(client.createChildTag({ tag_id }, { name: ' ' }));
  expect(error).toMatchObject({ remedy: 'give_up', status: 422, mayHaveTakenEffect: false });
  expect(error.message).toMatch(/422.*name/);
});

test('a list that leads nowhere but to itself ends with an error', async () => {
  const { client, fault, journal } = await newCompany();
  const next = `${sandbox.sandbox.apiUrl}/contacts?limit=7`;
  const body = { _pagination: { next }, _links: { self: next }, _results: [{ id: 'crd_1' }] };
  await fault({ status: 200, body }, 9);
  const seen: number[] = [];
  const walk = async () => {
    for await (const { _results } of client.pages.listContacts()) seen.push(_results.length);
  };
  expect((await failureOf(walk())).message).toContain('names itself');
  expect(seen).toEqual([1, 1]);
  expect((await journal()).length).toBe(2);
});
