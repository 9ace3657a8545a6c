import { expect, test } from 'vitest';
import { at, START_MS, startFrozen } from '../sandbox/support/test-sandbox.ts';

interface Tag {
  _links: { self: string; children: string };
  id: string;
  name: string;
  parent_tag_id: string | null;
  is_private: boolean;
  created_at: number;
  updated_at: number;
}

async function start() {
  const service = await startFrozen();
  const company = await service.company();
  const token = at(company.api_tokens, 0).token;
  const tag = at(company.tags, 0);
  return { service, company, token, tag };
}

test('a child tag is created, listed below its parent, and read back as it was sent', async () => {
  const { service, token, tag } = await start();
  const sent = { name: 'Überfällig', description: 'since Monday', color_of_ours: [1, { deep: true }] };
  const { status, body: child } = await service.call<Tag>('POST', `/tags/${tag}/children`, token, sent);
  expect(status).toBe(201);
  expect(child).toMatchObject({ ...sent, parent_tag_id: tag, is_private: false });
  expect([child.created_at, child.updated_at]).toEqual([START_MS / 1000, START_MS / 1000]);
  expect((await service.call('GET', child._links.self, token)).body).toEqual(child);
  const parent = await service.call<Tag>('GET', `/tags/${tag}`, token);
  const children = await service.call('GET', parent.body._links.children, token);
  expect(children.body).toMatchObject({ _results: [child], _pagination: { next: null } });
});

test('a tag moves to another parent, and to none; updated_at tells when', async () => {
  const { service, company, token, tag } = await start();
  const other = at(company.tags, 1);
  await service.advance(5_000);
  const moved = await service.call<Tag>('PATCH', `/tags/${other}`, token, { parent_tag_id: tag });
  expect(moved.status).toBe(200);
  expect(moved.body).toMatchObject({ parent_tag_id: tag, updated_at: (START_MS + 5_000) / 1000 });
  const alone = await service.call<Tag>('PATCH', `/tags/${other}`, token, { parent_tag_id: null });
  expect(alone.body.parent_tag_id).toBeNull();
  const children = await service.call('GET', `/tags/${tag}/children`, token);
  expect(children.body).toMatchObject({ _results: [] });
});

test('a tag cannot be its own parent, nor one of its children’s child; nothing changes then', async () => {
  const { service, company, token, tag } = await start();
  const [child, grandchild] = [at(company.tags, 1), at(company.tags, 2)];
  await service.call('PATCH', `/tags/${child}`, token, { parent_tag_id: tag });
  await service.call('PATCH', `/tags/${grandchild}`, token, { parent_tag_id: child });
  for (const parent of [tag, child, grandchild]) {
    const refused = await service.call('PATCH', `/tags/${tag}`, token, { parent_tag_id: parent, name: 'no' });
    expect(refused.status).toBe(422);
    expect(refused.body).toMatchObject({ _error: { status: 422 } });
  }
  expect((await service.call('GET', `/tags/${tag}`, token)).body).toMatchObject({
    name: 'Urgent',
    parent_tag_id: null,
  });
});

test('what is wrong is refused: an unknown tag, an unknown parent, a name that is none, no object', async () => {
  const { service, token, tag } = await start();
  const statusOf = async (method: string, path: string, body?: unknown) =>
    (await service.call(method, path, token, body)).status;
  expect(await statusOf('GET', '/tags/tag_none')).toBe(404);
  expect(await statusOf('GET', '/tags/tag_none/children')).toBe(404);
  expect(await statusOf('POST', '/tags/tag_none/children', { name: 'x' })).toBe(404);
  expect(await statusOf('PATCH', `/tags/${tag}`, { parent_tag_id: 'tag_none' })).toBe(422);
  expect(await statusOf('POST', `/tags/${tag}/children`, { name: '' })).toBe(422);
  expect(await statusOf('POST', `/tags/${tag}/children`, {})).toBe(422);
  expect(await statusOf('POST', `/tags/${tag}/children`, ['x'])).toBe(400);
  expect(await statusOf('DELETE', `/tags/${tag}`)).toBe(405);
});

test('what only the service sets cannot be sent', async () => {
  const { service, token, tag } = await start();
  const sent = { name: 'x', id: 'tag_mine', is_private: true, created_at: 1, _links: { self: 'nowhere' } };
  const { body } = await service.call<Tag>('POST', `/tags/${tag}/children`, token, sent);
  expect(body).toMatchObject({ name: 'x', is_private: false, created_at: START_MS / 1000 });
  expect(body.id).not.toBe('tag_mine');
  expect(body._links.self).toContain(`/tags/${body.id}`);
});
