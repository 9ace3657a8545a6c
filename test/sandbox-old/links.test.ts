import { expect, test } from 'vitest';
import { expectGuarded } from '../sandbox/support/guarded.ts';
import { at, START_MS, startFrozen } from '../sandbox/support/test-sandbox.ts';

interface Link {
  _links: { self: string };
  id: string;
  name: string;
  external_url: string | null;
}

interface List {
  _results: Link[];
}

async function start(spec: object = {}) {
  const service = await startFrozen();
  const company = await service.company(spec);
  const token = at(company.api_tokens, 0).token;
  const list = async () => (await service.call<List>('GET', '/links', token)).body._results;
  expect((await list()).map(({ id }) => id)).toEqual(company.links);
  return { service, token, list };
}

test('a link is created, listed and read back as it was sent', async () => {
  const { service, token, list } = await start();
  const sent = {
    name: 'Order 77 💛',
    type: 'app',
    external_url: 'https://shop.example/orders/77?tab=items#top',
    custom_fields: { total: 12.5 },
    ours: { deep: [1] },
  };
  const { status, body: link } = await service.call<Link>('POST', '/links', token, sent);
  expect(status).toBe(201);
  expect(link).toMatchObject({ ...sent, created_at: START_MS / 1000, updated_at: START_MS / 1000 });
  expect((await service.call('GET', link._links.self, token)).body).toEqual(link);
  expect((await list()).at(-1)).toEqual(link);
});

test('a link needs an address or a name', async () => {
  const { service, token } = await start();
  const external_url = 'https://crm.example/1';
  const named = await service.call('POST', '/links', token, { name: 'Deal 1' });
  expect(named.body).toMatchObject({ name: 'Deal 1', external_url: null, type: 'web', custom_fields: {} });
  const addressed = await service.call('POST', '/links', token, { external_url });
  expect(addressed.body).toMatchObject({ name: external_url, external_url });
  expect((await service.call('POST', '/links', token, { type: 'web' })).status).toBe(422);
});

test('what is wrong is refused: an unknown link, a foreign one, a body that is wrong, another method', async () => {
  const { service, token, list } = await start();
  const before = await list();
  const other = await service.company();
  const statusOf = async (method: string, path: string, body?: unknown) => {
    const answer = await service.call(method, path, token, body);
    expect(answer.body).toMatchObject({ _error: { status: answer.status } });
    return answer.status;
  };
  expect(await statusOf('GET', '/links/lnk_none')).toBe(404);
  expect(await statusOf('GET', `/links/${at(other.links, 0)}`)).toBe(404);
  expect(await statusOf('POST', '/links', { external_url: 'no address' })).toBe(422);
  expect(await statusOf('POST', '/links', { name: 5 })).toBe(422);
  expect(await statusOf('POST', '/links', { name: 'x', custom_fields: [] })).toBe(422);
  expect(await statusOf('POST', '/links', [])).toBe(400);
  expect(await statusOf('DELETE', '/links')).toBe(405);
  expect(await statusOf('PATCH', `/links/${at(before, 0).id}`, {})).toBe(405);
  expect(await list()).toEqual(before);
});

test('POST /links is guarded globally: 60 requests in 60 seconds, whatever they link to', async () => {
  const { service, token } = await start({ plan: 'enterprise' });
  let number = 0;
  const post = () => {
    number += 1;
    return service.call('POST', '/links', token, { external_url: `https://shop.example/${number}` });
  };
  await expectGuarded(service, {
    tier: 'dynamic-object',
    limit: 60,
    windowMs: 60_000,
    send: [post],
    apart: [() => service.call('GET', '/links', token)],
  });
});

test('one company’s links do not use up another’s guard', async () => {
  const { service, token } = await start({ plan: 'enterprise' });
  const other = at((await service.company()).api_tokens, 0).token;
  for (let request = 0; request < 60; request++) await service.call('POST', '/links', token, { name: 'x' });
  expect((await service.call('POST', '/links', token, { name: 'x' })).status).toBe(429);
  expect((await service.call('POST', '/links', other, { name: 'x' })).status).toBe(201);
});
