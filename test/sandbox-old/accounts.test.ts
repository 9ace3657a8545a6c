import { expect, test } from 'vitest';
import { expectGuarded } from '../sandbox/support/guarded.ts';
import { at, START_MS, startFrozen } from '../sandbox/support/test-sandbox.ts';

interface Account {
  _links: { self: string; related: { contacts: string } };
  id: string;
  name: string;
  domains: string[];
  is_blocked: boolean;
  created_at: number;
  updated_at: number;
}

interface List<Item> {
  _pagination: { next: string | null };
  _results: Item[];
}

async function start(spec: object = {}) {
  const service = await startFrozen();
  const company = await service.company(spec);
  const token = at(company.api_tokens, 0).token;
  const list = async () => (await service.call<List<Account>>('GET', '/accounts', token)).body._results;
  const accounts = await list();
  expect(accounts.map(({ id }) => id)).toEqual(company.accounts);
  return { service, company, token, list, account: at(accounts, 0) };
}

test('an account is created, listed and read back as it was sent', async () => {
  const { service, token, list } = await start();
  const sent = {
    name: 'Ørsted & Søn',
    description: 'pays late',
    domains: ['orsted.example', 'son.example'],
    external_id: 'erp/17',
    custom_fields: { tier: 'gold', seats: 12, notes: [null, { deep: true }] },
    is_blocked: true,
    account_id: 'ours-17',
    member_of_ours: ['x'],
  };
  const { status, body: account } = await service.call<Account>('POST', '/accounts', token, sent);
  expect(status).toBe(201);
  expect(account).toMatchObject({ ...sent, created_at: START_MS / 1000, updated_at: START_MS / 1000 });
  expect((await service.call('GET', account._links.self, token)).body).toEqual(account);
  expect((await list()).at(-1)).toEqual(account);
});

test('of a new account only the name is needed; it is not blocked', async () => {
  const { service, token } = await start();
  const { body } = await service.call('POST', '/accounts', token, { name: 'A' });
  expect(body).toMatchObject({
    name: 'A',
    description: null,
    domains: [],
    external_id: null,
    custom_fields: {},
    is_blocked: false,
  });
});

test('an account is changed, blocked and unblocked; updated_at tells when', async () => {
  const { service, token, account } = await start();
  expect(account.is_blocked).toBe(false);
  await service.advance(7_000);
  const path = `/accounts/${account.id}`;
  const changes = { is_blocked: true, external_id: null, custom_fields: { vip: true } };
  const changed = await service.call<Account>('PATCH', path, token, changes);
  expect(changed.status).toBe(200);
  expect(changed.body).toEqual({ ...account, ...changes, updated_at: (START_MS + 7_000) / 1000 });
  expect((await service.call('GET', path, token)).body).toEqual(changed.body);
  const unblocked = await service.call('PATCH', path, token, { is_blocked: false });
  expect(unblocked.body).toEqual({ ...changed.body, is_blocked: false });
});

test('an account’s contacts are those with a mail address at one of its domains', async () => {
  const { service, token, account } = await start({ contacts: 90 });
  interface Contact {
    id: string;
    handles: { handle: string; source: string }[];
  }
  const all = await service.call<List<Contact>>('GET', '/contacts?limit=100', token);
  const withDomain = (domain: string) =>
    all.body._results.filter(({ handles }) =>
      handles.some(({ handle, source }) => source === 'email' && handle.endsWith(`@${domain}`)),
    );
  const contactsOf = async ({ _links }: Account) =>
    (await service.call<List<Contact>>('GET', _links.related.contacts, token)).body._results;
  const ours = withDomain(at(account.domains, 0));
  expect(ours.length).toBeGreaterThan(3);
  expect(await contactsOf(account)).toEqual(ours);
  await service.call('PATCH', `/accounts/${account.id}`, token, { domains: ['EXAMPLE.org', 'none.example'] });
  expect(await contactsOf(account)).toEqual(withDomain('example.org'));
});

test('what is wrong is refused: an unknown account, a foreign one, a body that is wrong, another method', async () => {
  const { service, token, account } = await start();
  const other = await service.company();
  const statusOf = async (method: string, path: string, body?: unknown) => {
    const answer = await service.call(method, path, token, body);
    expect(answer.body).toMatchObject({ _error: { status: answer.status } });
    return answer.status;
  };
  const path = `/accounts/${account.id}`;
  for (const id of ['acc_none', at(other.accounts, 0)]) {
    expect(await statusOf('GET', `/accounts/${id}`)).toBe(404);
    expect(await statusOf('GET', `/accounts/${id}/contacts`)).toBe(404);
    expect(await statusOf('PATCH', `/accounts/${id}`, { name: 'x' })).toBe(404);
  }
  expect(await statusOf('POST', '/accounts', {})).toBe(422);
  expect(await statusOf('POST', '/accounts', { name: ' ' })).toBe(422);
  expect(await statusOf('POST', '/accounts', { name: 'x', domains: 'x.example' })).toBe(422);
  expect(await statusOf('POST', '/accounts', ['x'])).toBe(400);
  expect(await statusOf('PATCH', path, { is_blocked: 'yes' })).toBe(422);
  expect(await statusOf('PATCH', path, { name: null })).toBe(422);
  expect(await statusOf('PATCH', path, 'x')).toBe(400);
  expect(await statusOf('DELETE', path)).toBe(405);
  expect(await statusOf('PUT', '/accounts')).toBe(405);
  expect((await service.call('GET', path, token)).body).toEqual(account);
});

test('what only the service sets cannot be sent', async () => {
  const { service, token, account } = await start();
  const sent = { id: 'acc_mine', created_at: 1, updated_at: 1, _links: { self: 'nowhere' } };
  const created = await service.call<Account>('POST', '/accounts', token, { name: 'x', ...sent });
  expect(created.body.id).not.toBe('acc_mine');
  expect(created.body).toMatchObject({ created_at: START_MS / 1000, updated_at: START_MS / 1000 });
  const changed = await service.call('PATCH', `/accounts/${account.id}`, token, sent);
  expect(changed.body).toEqual({ ...account, updated_at: START_MS / 1000 });
});

test('POST /accounts is guarded by the account_id in the body', async () => {
  const { service, token, account } = await start();
  const post = (account_id: string) => () =>
    service.call('POST', '/accounts', token, { name: 'x', account_id });
  await expectGuarded(service, {
    tier: '2',
    limit: 5,
    windowMs: 1_000,
    send: [post('ours-1')],
    apart: [
      post('ours-2'),
      () => service.call('POST', '/accounts', token, { name: 'x' }),
      () => service.call('PATCH', `/accounts/${account.id}`, token, {}),
    ],
  });
});

test('POST /accounts without an account_id counts together, whatever is sent', async () => {
  const { service, token } = await start();
  await expectGuarded(service, {
    tier: '2',
    limit: 5,
    windowMs: 1_000,
    send: [
      () => service.call('POST', '/accounts', token, { name: 'x' }),
      () => service.call('POST', '/accounts', token, { name: 'y', external_id: 'y' }),
    ],
  });
});

test('PATCH /accounts/:account_id is guarded by account, apart from POST /accounts with that account_id', async () => {
  const { service, token, list, account } = await start();
  const other = at(await list(), 1);
  await expectGuarded(service, {
    tier: '2',
    limit: 5,
    windowMs: 1_000,
    send: [
      () => service.call('PATCH', `/accounts/${account.id}`, token, { name: 'x' }),
      () => service.call('PATCH', `/accounts/${account.id}`, token, { is_blocked: true }),
    ],
    apart: [
      () => service.call('PATCH', `/accounts/${other.id}`, token, { name: 'x' }),
      () => service.call('POST', '/accounts', token, { name: 'x', account_id: account.id }),
      () => service.call('GET', `/accounts/${account.id}`, token),
    ],
  });
});
