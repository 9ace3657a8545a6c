import { expect, test } from 'vitest';
import { at, startFrozen } from '../sandbox/support/test-sandbox.ts';

interface Inbox {
  _links: { self: string };
  id: string;
  name: string;
  is_private: boolean;
  teammate_id: string | null;
  teammate_ids: string[];
}

interface List {
  _results: Inbox[];
}

async function start() {
  const service = await startFrozen();
  const company = await service.company();
  const token = at(company.api_tokens, 0).token;
  const { access_token: oauth } = await service.install(company);
  const list = async (by: string) => (await service.call<List>('GET', '/inboxes', by)).body._results;
  return { service, company, token, oauth, list };
}

test('inboxes are listed, and each is fetched alone', async () => {
  const { service, company, token, list } = await start();
  const inboxes = await list(token);
  expect(inboxes.map(({ id }) => id)).toEqual(company.inboxes);
  for (const inbox of inboxes) {
    expect((await service.call('GET', inbox._links.self, token)).body).toEqual(inbox);
  }
});

test('two inboxes are shared, and a private one belongs to a teammate, who alone can access it', async () => {
  const { company, token, list } = await start();
  const inboxes = await list(token);
  const shared = inboxes.filter(({ is_private }) => !is_private);
  expect(shared.map(({ teammate_id }) => teammate_id)).toEqual([null, null]);
  const everyone = company.teammates.map(({ id }) => id);
  for (const { teammate_ids } of shared) expect(everyone).toEqual(expect.arrayContaining(teammate_ids));
  const own = inboxes.filter(({ is_private }) => is_private);
  expect(own).toHaveLength(1);
  expect(at(own, 0).teammate_ids).toEqual([at(own, 0).teammate_id]);
  expect(everyone).toContain(at(own, 0).teammate_id);
});

test('a private inbox is missing in an OAuth token’s list, and 403 by its id', async () => {
  const { service, token, oauth, list } = await start();
  const all = await list(token);
  const own = all.find(({ is_private }) => is_private);
  expect(await list(oauth)).toEqual(all.filter(({ is_private }) => !is_private));
  const { status, body } = await service.call('GET', `/inboxes/${own?.id}`, oauth);
  expect(status).toBe(403);
  expect(body).toMatchObject({ _error: { status: 403, title: 'Forbidden' } });
});

test('unknown and foreign inboxes are 404, other methods 405', async () => {
  const { service, company, token } = await start();
  const other = await service.company();
  for (const id of ['inb_none', at(other.inboxes, 0), at(other.inboxes, 2)]) {
    expect((await service.call('GET', `/inboxes/${id}`, token)).status).toBe(404);
  }
  expect((await service.call('PATCH', `/inboxes/${at(company.inboxes, 0)}`, token, {})).status).toBe(405);
  expect((await service.call('DELETE', '/inboxes', token)).status).toBe(405);
});
