import { expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { failureOf } from './failure-of.ts';
import { startTestClient } from './test-client.ts';

const { newCompany, sandbox } = await startTestClient();

test('each route has a method, and each list one for its pages and one for its items', async () => {
  const { each, pages, ...calls } = (await newCompany()).client;
  const lists = ROUTES.filter(([, { list }]) => list).map(([operation]) => operation);
  expect(Object.keys(calls)).toEqual(ROUTES.map(([operation]) => operation));
  expect(Object.keys(each)).toEqual(lists);
  expect(Object.keys(pages)).toEqual(lists);
  expect(lists).toContain('listTags');
});

test('the answer, and a later call, show what was sent', async () => {
  const { client, company, tagId, journal } = await newCompany();
  const child = await client.createChildTag(
    { tag_id: tagId },
    { name: 'Größe „Ä“ 💛', description: 'a "quote"' },
  );
  expect(child).toMatchObject({ name: 'Größe „Ä“ 💛', description: 'a "quote"', parent_tag_id: tagId });
  const moved = await client.updateTag({ tag_id: child.id }, { parent_tag_id: null, name: 'Moved' });
  expect(moved).toMatchObject({ id: child.id, name: 'Moved', parent_tag_id: null });
  expect(await client.getTag({ tag_id: child.id })).toEqual(moved);
  expect((await client.getIdentity()).id).toBe(company.id);
  const rows = (await journal()).map(({ method, status }) => `${method} ${status}`);
  expect(rows).toEqual(['POST 201', 'PATCH 200', 'GET 200', 'GET 200']);
});

test('arguments and answers have the types of the contract', async () => {
  const { client, tagId } = await newCompany();
  const wrong = async () => {
    // @ts-expect-error a tag's id is needed
    await client.createChildTag({ name: 'x' });
    // @ts-expect-error the id is not called so
    await client.getTag({ id: tagId });
    // @ts-expect-error a new tag has a name
    await client.createChildTag({ tag_id: tagId }, { description: 'x' });
    // @ts-expect-error one tag is no list
    client.each.getTag({ tag_id: tagId });
    // @ts-expect-error a tag is read at once
    await client.getTag({ tag_id: tagId }, { respondAsync: true });
    // @ts-expect-error one tag has no pages
    await client.getTag({ tag_id: tagId }, { limit: 5 });
  };
  expect(wrong).toBeTypeOf('function');
  const name: string = (await client.getTag({ tag_id: tagId })).name;
  const first: string | undefined = (await client.listTags({ limit: 1 }))._results[0]?.name;
  expect(name).toBe(first);
});

test('a value for the path stays one segment', async () => {
  const { client, journal } = await newCompany();
  for (const contact_id of ['../tags', 'a/b', '?limit=1', '#', '%2e%2e', 'ü &', '..%2ftags', 17]) {
    const error = await failureOf(client.getContact({ contact_id: contact_id as string }));
    expect(error).toMatchObject({ remedy: 'give_up', status: 404 });
    expect(error.message).toContain(String(contact_id));
  }
  const paths = (await journal()).map(({ path }) => path);
  expect(paths.length).toBe(8);
  expect(paths.filter((path) => !path.startsWith('/contacts/'))).toEqual([]);
});

test('a call without a value for its path is not sent', async () => {
  const { client, journal } = await newCompany();
  for (const contact_id of [undefined, '', '.', '..', null, {}, true]) {
    const error = await failureOf(client.getContact({ contact_id: contact_id as string }));
    expect(error).toMatchObject({ remedy: 'give_up', status: undefined });
    expect(error.message).toContain('contact_id');
  }
  expect((await failureOf(client.each.listChildTags({ tag_id: '' }).next())).message).toContain('tag_id');
  expect(await journal()).toEqual([]);
});

test('a list gives one page, all pages or all items, and asks for no page before its time', async () => {
  const { client, journal } = await newCompany({ contacts: 45 });
  const page = await client.listContacts({ limit: 20 });
  expect(page._results.length).toBe(20);

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

test('the asynchronous form of a message answers with its message_uid', async () => {
  const { client, company } = await newCompany();
  const [channel_id = ''] = company.channels;
  const body = { to: ['ada@example.com'], body: 'Hello' };
  const accepted = await client.createMessage({ channel_id }, body, { respondAsync: true });
  const { message_uid }: { message_uid: string } = accepted;
  expect(await client.getMessage({ message_id: message_uid })).toMatchObject({ message_uid, body: 'Hello' });
  const drafted = await client.createMessage({ channel_id }, body);
  expect(drafted).toMatchObject({ is_draft: true, body: 'Hello' });
  // This route takes no body.
  expect(await client.markMessageSeen({ message_id: drafted.id })).toMatchObject({ is_seen: true });
});

test('an answer that is no JSON is returned as text', async () => {
  const { client } = await newCompany({ conversations: 2 });
  const { id: export_id } = await client.createExport({ start: 0 });
  await sandbox.advance(60_000);
  const file: string = await client.getExportFile({ export_id });
  expect(file.split('\n')[0]).toContain(',');
  expect(file.trim().split('\n').length).toBe(3);
});

test('the error of a bad body quotes the service', async () => {
  const { client, tagId } = await newCompany();
  const error = await failureOf(client.createChildTag({ tag_id: tagId }, { name: ' ' }));
  expect(error).toMatchObject({ remedy: 'give_up', status: 422 });
  expect(error.message).toMatch(/422.*name/);
});
