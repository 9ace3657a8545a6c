import { expect, test } from 'vitest';
import { expectGuarded } from '../sandbox/support/guarded.ts';
import { at, START_MS, startFrozen } from '../sandbox/support/test-sandbox.ts';

interface Event {
  _links: { self: string };
  id: string;
  type: string;
}

interface List {
  _results: Event[];
}

async function start() {
  const service = await startFrozen();
  const company = await service.company({ plan: 'enterprise' });
  const token = at(company.api_tokens, 0).token;
  const { access_token: oauth } = await service.install(company);
  const uid = service.sandbox.application.client_id;
  const path = `/applications/${uid}/events`;
  const post = (body: unknown, by = token) => service.call<Event>('POST', path, by, body);
  const list = async (by = token) => (await service.call<List>('GET', path, by)).body._results;
  return { service, company, token, oauth, uid, path, post, list };
}

test('an event is accepted, with an id under which it is read back as it was sent', async () => {
  const { service, token, uid, post, list } = await start();
  const sent = {
    type: 'order.paid',
    object: { type: 'order', id: 4711 },
    payload: { total: 12.5, lines: [{ sku: 'ü-1' }] },
    ours: true,
  };
  const { status, body: event } = await post(sent);
  expect(status).toBe(202);
  expect(event).toMatchObject({
    ...sent,
    application_uid: uid,
    status: 'accepted',
    created_at: START_MS / 1000,
  });
  expect((await service.call('GET', event._links.self, token)).body).toEqual(event);
  expect(await list()).toEqual([event]);
});

test('an event’s object may be one word, or missing', async () => {
  const { post } = await start();
  expect((await post({ type: 'opened', object: 'cart' })).body).toMatchObject({ object: 'cart' });
  expect((await post({ type: 'opened' })).body).toMatchObject({ object: null, payload: {} });
});

test('events are kept per company and per application', async () => {
  const { service, company, token, post, list } = await start();
  const other = await service.company();
  const otherToken = at(other.api_tokens, 0).token;
  const application = await service.application();
  const otherPath = `/applications/${application.client_id}/events`;
  const { body: event } = await post({ type: 'a' });
  const { body: ofOther } = await service.call<Event>('POST', otherPath, token, { type: 'b' });
  expect(await list()).toEqual([event]);
  expect((await service.call<List>('GET', otherPath, token)).body._results).toEqual([ofOther]);
  expect(await list(otherToken)).toEqual([]);
  expect((await service.call('GET', event._links.self, otherToken)).status).toBe(404);
  expect((await service.call('GET', `${otherPath}/${event.id}`, token)).status).toBe(404);
  const { counts } = (await service.state()).companies.find(({ id }) => id === company.id) ?? {};
  expect(counts).toMatchObject({ application_events: 2 });
});

test('an OAuth token tells of events of its own application alone', async () => {
  const { service, company, token, oauth, post, list } = await start();
  expect((await post({ type: 'a' }, oauth)).status).toBe(202);
  expect(await list(oauth)).toHaveLength(1);
  const application = await service.application();
  const path = `/applications/${application.client_id}/events`;
  const { body: event } = await service.call<Event>('POST', path, token, { type: 'a' });
  for (const [method, to] of [
    ['POST', path],
    ['GET', path],
    ['GET', event._links.self],
  ] as const) {
    const refused = await service.call(method, to, oauth, method === 'POST' ? { type: 'a' } : undefined);
    expect(refused.status).toBe(403);
  }
  const { access_token } = await service.install(company, application);
  expect((await service.call('POST', path, access_token, { type: 'a' })).status).toBe(202);
  expect((await service.call<List>('GET', path, token)).body._results).toHaveLength(2);
});

test('what is wrong is refused: an unknown application or event, a body that is wrong, another method', async () => {
  const { service, token, oauth, path, post, list } = await start();
  const statusOf = async (method: string, to: string, body?: unknown, by = token) => {
    const answer = await service.call(method, to, by, body);
    expect(answer.body).toMatchObject({ _error: { status: answer.status } });
    return answer.status;
  };
  expect(await statusOf('POST', '/applications/app_none/events', { type: 'a' })).toBe(404);
  expect(await statusOf('POST', '/applications/app_none/events', { type: 'a' }, oauth)).toBe(404);
  expect(await statusOf('GET', '/applications/app_none/events')).toBe(404);
  expect(await statusOf('GET', `${path}/evt_none`)).toBe(404);
  for (const body of [
    {},
    { type: '' },
    { type: 5 },
    { type: 'a', object: 5 },
    { type: 'a', object: { id: [] } },
  ]) {
    expect(await statusOf('POST', path, body)).toBe(422);
  }
  expect((await post(['a'])).status).toBe(400);
  expect(await statusOf('PUT', path, { type: 'a' })).toBe(405);
  expect(await list()).toEqual([]);
});

test('events are guarded by application, type and object', async () => {
  const { service, token, path, post } = await start();
  const other = await service.application();
  const paid = (object?: unknown) => () => post({ type: 'paid', object });
  const order = { type: 'order', id: '1' };
  await expectGuarded(service, {
    tier: '2',
    limit: 5,
    windowMs: 1_000,
    send: [paid(order), () => post({ type: 'paid', object: order, payload: { other: 'payload' } })],
    apart: [
      paid(),
      paid({ type: 'order', id: '2' }),
      paid({ type: 'return', id: '1' }),
      paid('order 1'),
      () => post({ type: 'paid order', object: '1' }),
      () => post({ type: 'cancelled', object: order }),
      () =>
        service.call('POST', `/applications/${other.client_id}/events`, token, {
          type: 'paid',
          object: order,
        }),
      () => service.call('GET', path, token),
    ],
  });
});

test('events without an object are guarded by application and type', async () => {
  const { service, post } = await start();
  await expectGuarded(service, {
    tier: '2',
    limit: 5,
    windowMs: 1_000,
    send: [() => post({ type: 'opened' }), () => post({ type: 'opened', payload: { page: 2 } })],
    apart: [
      () => post({ type: 'closed' }),
      () => post({ type: 'opened', object: 'cart' }),
      () => post({ type: 'opened again' }),
    ],
  });
});
