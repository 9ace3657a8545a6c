import { expect, test } from 'vitest';
import { expectGuarded } from '../sandbox/support/guarded.ts';
import { at, START_MS, startFrozen } from '../sandbox/support/test-sandbox.ts';

interface Teammate {
  _links: { self: string; related: { inboxes: string } };
  id: string;
  email: string;
  username: string;
  first_name: string;
  last_name: string;
  name: string;
  is_admin: boolean;
  is_available: boolean;
  is_blocked: boolean;
  signature?: string | null;
}

interface List<Item> {
  _results: Item[];
}

async function start() {
  const service = await startFrozen();
  const company = await service.company();
  const token = at(company.api_tokens, 0).token;
  const { access_token: oauth } = await service.install(company);
  const list = async (by = token) =>
    (await service.call<List<Teammate>>('GET', '/teammates', by)).body._results;
  const id = at(company.teammates, 1).id;
  const path = `/teammates/${id}`;
  const patch = (body: unknown, by = token) => service.call<Teammate>('PATCH', path, by, body);
  return { service, company, token, oauth, list, id, path, patch };
}

test('teammates are listed, and each is fetched alone', async () => {
  const { service, company, token, list } = await start();
  const teammates = await list();
  expect(teammates.map(({ id }) => id)).toEqual(company.teammates.map(({ id }) => id));
  for (const teammate of teammates) {
    expect((await service.call('GET', teammate._links.self, token)).body).toEqual(teammate);
    expect(teammate.name).toBe(`${teammate.first_name} ${teammate.last_name}`.trim());
  }
});

test('a teammate is changed and read back as sent; updated_at tells when', async () => {
  const { service, token, path, patch } = await start();
  const before = (await service.call<Teammate>('GET', path, token)).body;
  await service.advance(3_000);
  const sent = {
    username: 'élo.dc',
    is_available: false,
    custom_fields: { shift: 'late', floors: [1, 2] },
    of_ours: { deep: null },
  };
  const { status, body } = await patch(sent);
  expect(status).toBe(200);
  expect(body).toEqual({ ...before, ...sent, updated_at: (START_MS + 3_000) / 1000 });
  expect((await service.call('GET', path, token)).body).toEqual(body);
});

test('the name keeps in step with first and last name, as far as the consent page', async () => {
  const { service, patch } = await start();
  const both = await patch({ first_name: 'Élodie', last_name: 'de la Cruz' });
  expect(both.body.name).toBe('Élodie de la Cruz');
  expect((await patch({ last_name: '' })).body).toMatchObject({ name: 'Élodie', last_name: '' });
  const whole = await patch({ name: 'Ada King Noel' });
  expect(whole.body).toMatchObject({ name: 'Ada King Noel', first_name: 'Ada', last_name: 'King Noel' });
  expect((await patch({ first_name: 'Augusta', name: 'X' })).body.name).toBe('Augusta King Noel');
  expect((await patch({ first_name: '', last_name: ' ' })).status).toBe(422);
  expect(await (await fetch(service.authorizeUrl())).text()).toContain('<bdi>Augusta King Noel</bdi>');
});

test('rank, block and address cannot be sent', async () => {
  const { service, company, token, id, path, patch } = await start();
  const before = (await service.call<Teammate>('GET', path, token)).body;
  const { body } = await patch({ is_admin: true, is_blocked: true, email: 'x@y.example', id: 'tea_x' });
  expect(body).toEqual({ ...before, updated_at: START_MS / 1000 });
  expect(before).toMatchObject({ is_admin: false, is_blocked: false });
  const refused = await service.decide({ teammate_id: id, decision: 'approve' });
  expect(refused.headers.get('location')).toContain('error=access_denied');
  expect((await service.state()).companies.find((one) => one.id === company.id)?.teammates[1]).toMatchObject({
    is_admin: false,
  });
});

test('a signature is read and changed with a token that reaches private resources, in lists too', async () => {
  const { list, patch, oauth } = await start();
  for (const { signature } of await list()) expect(signature).toMatch(/^<p>/);
  expect((await patch({ signature: '<p>— É.</p>' })).body.signature).toBe('<p>— É.</p>');
  expect(at(await list(), 1).signature).toBe('<p>— É.</p>');
  expect((await patch({ signature: null })).body.signature).toBeNull();
  for (const teammate of await list(oauth)) expect(teammate).not.toHaveProperty('signature');
});

test('an OAuth token changes a teammate, but not the signature, and nothing beside it then', async () => {
  const { list, patch, oauth } = await start();
  await patch({ signature: 'Mine' });
  const changed = await patch({ is_available: false }, oauth);
  expect(changed.status).toBe(200);
  expect(changed.body).toMatchObject({ is_available: false });
  expect(changed.body).not.toHaveProperty('signature');
  const refused = await patch({ signature: 'Yours', username: 'taken' }, oauth);
  expect(refused.status).toBe(403);
  expect(at(await list(), 1).signature).toBe('Mine');
  expect(at(await list(), 1).username).not.toBe('taken');
});

test('a teammate’s inboxes are the shared ones that it can access, and for a token that reaches it the own', async () => {
  const { service, token, oauth, list } = await start();
  interface Inbox {
    id: string;
    is_private: boolean;
    teammate_id: string | null;
  }
  const read = async (path: string, by: string) =>
    (await service.call<List<Inbox>>('GET', path, by)).body._results;
  const [support, sales, own] = await read('/inboxes', token);
  const [first, second, third] = (await list()).map(({ _links }) => _links.related.inboxes);
  expect(own).toMatchObject({ is_private: true, teammate_id: at(await list(), 0).id });
  expect(await read(first ?? '', token)).toEqual([support, sales, own]);
  expect(await read(second ?? '', token)).toEqual([support, sales]);
  expect(await read(third ?? '', token)).toEqual([support]);
  expect(await read(first ?? '', oauth)).toEqual([support, sales]);
});

test('what is wrong is refused: an unknown teammate, a foreign one, a body that is wrong, another method', async () => {
  const { service, token, path } = await start();
  const before = (await service.call('GET', path, token)).body;
  const other = await service.company();
  const statusOf = async (method: string, to: string, body?: unknown) => {
    const answer = await service.call(method, to, token, body);
    expect(answer.body).toMatchObject({ _error: { status: answer.status } });
    return answer.status;
  };
  for (const id of ['tea_none', at(other.teammates, 0).id]) {
    expect(await statusOf('GET', `/teammates/${id}`)).toBe(404);
    expect(await statusOf('GET', `/teammates/${id}/inboxes`)).toBe(404);
    expect(await statusOf('PATCH', `/teammates/${id}`, {})).toBe(404);
  }
  expect(await statusOf('PATCH', path, { username: 'two words' })).toBe(422);
  await service.advance(1_000);
  expect(await statusOf('PATCH', path, { is_available: 'no' })).toBe(422);
  expect(await statusOf('PATCH', path, { name: ' ' })).toBe(422);
  expect(await statusOf('PATCH', path, ['x'])).toBe(400);
  expect(await statusOf('DELETE', path)).toBe(405);
  expect(await statusOf('POST', `${path}/inboxes`, {})).toBe(405);
  expect((await service.call('GET', path, token)).body).toEqual(before);
});

test('PATCH /teammates/:teammate_id is guarded by teammate', async () => {
  const { service, company, token, path, patch } = await start();
  const other = `/teammates/${at(company.teammates, 0).id}`;
  await expectGuarded(service, {
    tier: '2',
    limit: 5,
    windowMs: 1_000,
    send: [() => patch({ is_available: true }), () => patch({ username: 'other' })],
    apart: [
      () => service.call('PATCH', other, token, { is_available: true }),
      () => service.call('GET', path, token),
    ],
  });
});
