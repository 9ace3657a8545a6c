import { expect, test } from 'vitest';
import { expectGuarded } from '../sandbox/support/guarded.ts';
import { at, startFrozen, type TestSandbox } from '../sandbox/support/test-sandbox.ts';

const LISTS = { tier: 'lists', requests: 5, per_ms: 100, paths: ['/contacts', '/conversations'] };

async function start(...guards: { tier: string; [member: string]: unknown }[]) {
  const service = await startFrozen({}, [LISTS.tier, ...guards.map(({ tier }) => tier)]);
  const company = await service.company({ plan: 'enterprise' });
  for (const guard of guards) expect((await service.control('guards', guard)).status).toBe(201);
  return { service, company, token: at(company.api_tokens, 0).token };
}

function removeAll(service: TestSandbox): Promise<Response> {
  return fetch(`${service.sandbox.origin}/_sandbox/guards`, { method: 'DELETE' });
}

test('a further guard counts a company’s requests to its routes together, and refuses as the others do', async () => {
  const { service, token } = await start(LISTS);
  const other = await service.company({ plan: 'enterprise' });
  const get = (path: string, by = token) => service.call('GET', path, by);
  await expectGuarded(service, {
    tier: 'lists',
    limit: 5,
    windowMs: 100,
    send: [() => get('/contacts?limit=1'), () => get('/conversations?limit=1')],
    apart: [() => get('/tags'), () => get('/contacts?limit=1', at(other.api_tokens, 0).token)],
  });
});

test('a partner’s requests and the company’s own fill one bucket of a further guard', async () => {
  const { service, company, token } = await start(LISTS);
  const { access_token } = await service.install(company);
  const statuses: number[] = [];
  for (const by of [token, access_token, token, access_token, token, access_token]) {
    statuses.push((await service.call('GET', '/contacts', by)).status);
  }
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
});

test('a further guard takes placeholders, and every route when it names none', async () => {
  const { service, company, token } = await start(
    { tier: 'tag', requests: 1, per_ms: 1_000, paths: ['/tags/:tag_id/children'] },
    { tier: 'all', requests: 4, per_ms: 1_000 },
  );
  const answers: unknown[] = [];
  for (const path of [`/tags/${at(company.tags, 0)}/children`, `/tags/${at(company.tags, 1)}/children`]) {
    const { status, headers } = await service.call('GET', path, token);
    answers.push([status, headers.get('x-service-tier')]);
  }
  expect(answers).toEqual([
    [200, 'tag'],
    [429, 'tag'],
  ]);
  expect(await service.statuses(4, '/me', token)).toEqual([200, 200, 200, 429]);
});

test('a further guard’s placeholder stands where the route has one: a search is no conversation', async () => {
  const paths = ['/conversations/:conversation_id/messages'];
  const { service, token } = await start({ tier: 'messages', requests: 1, per_ms: 1_000, paths });
  expect(await service.statuses(2, '/conversations/search/messages', token)).toEqual([200, 200]);
});

test('a route with a guard of its own keeps it beside a further one, and each refusal names its own', async () => {
  const { service, company, token } = await start({ tier: 'writes', requests: 6, per_ms: 2_000 });
  const tiers: unknown[] = [];
  for (const [teammate, times] of [
    [at(company.teammates, 0).id, 6],
    [at(company.teammates, 1).id, 2],
  ] as const) {
    for (let time = 0; time < times; time++) {
      const { status, headers } = await service.call('PATCH', `/teammates/${teammate}`, token, {});
      tiers.push(`${status} ${headers.get('x-service-tier')}`);
    }
  }
  expect(tiers).toEqual([...Array(5).fill('200 2'), '429 2', '200 2', '429 writes']);
});

test('a guard of the same tier takes the place of the one before, with nothing counted', async () => {
  const { service, token } = await start(LISTS);
  expect(await service.statuses(6, '/contacts', token)).toEqual([200, 200, 200, 200, 200, 429]);
  await service.done('guards', { ...LISTS, requests: 2 });
  expect(await service.statuses(3, '/contacts', token)).toEqual([200, 200, 429]);
});

test('a tier may be called as we call one of the specification’s guards: that one stays as it is', async () => {
  const { service, company, token } = await start({
    tier: 'resource',
    requests: 1,
    per_ms: 100,
    paths: ['/contacts'],
  });
  expect(await service.statuses(2, '/contacts', token)).toEqual([200, 429]);
  const path = `/teammates/${at(company.teammates, 0).id}`;
  const statuses: number[] = [];
  for (let time = 0; time < 6; time++) statuses.push((await service.call('PATCH', path, token, {})).status);
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
});

test('further guards go all at once, with a reset, and come back with a snapshot', async () => {
  const { service, token } = await start({ ...LISTS, requests: 1 });
  expect(await service.statuses(2, '/contacts', token)).toEqual([200, 429]);
  const { id } = await service.done<{ id: string }>('snapshot', {});
  expect(await (await removeAll(service)).json()).toEqual({ deleted: 1 });
  expect(await service.statuses(3, '/contacts', token)).toEqual([200, 200, 200]);
  await service.done('restore', { id });
  expect(await service.statuses(1, '/contacts', token)).toEqual([429]);
  await service.advance(100);
  expect(await service.statuses(2, '/contacts', token)).toEqual([200, 429]);

  await service.done('reset', {});
  const { api_tokens } = await service.company({ plan: 'enterprise' });
  expect(await service.statuses(2, '/contacts', at(api_tokens, 0).token)).toEqual([200, 200]);
});

test('what is no guard is refused, with what is wrong', async () => {
  const { service } = await start();
  for (const [body, wrong] of [
    [{ ...LISTS, tier: 'two words' }, 'tier'],
    [{ ...LISTS, requests: 0 }, 'requests'],
    [{ ...LISTS, per_ms: 0.5 }, 'per_ms'],
    [{ ...LISTS, paths: [] }, 'paths'],
    [{ ...LISTS, paths: ['contacts'] }, 'paths.0'],
    [{ ...LISTS, often: true }, 'often'],
  ] as const) {
    const response = await service.control('guards', body);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(wrong);
  }
});
