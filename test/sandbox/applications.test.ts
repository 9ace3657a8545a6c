import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { EXPOSE_WORDS } from '../../src/contract/sandbox.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { at, basic, START_MS, startCompany, startFrozen } from './support/test-sandbox.ts';

interface List<T> {
  _results: T[];
}

interface Thing {
  id: string;
  teammate_id: string | null;
  _links: { self: string };
}

describe('Authentication', () => {
  test('3. Any teammate authorizes a tool-protocol application; its token acts for them', async () => {
    const { service, company, token } = await startCompany();
    const partner = service.install(company).access_token;
    const application = service.application({ kind: 'tool-protocol' });
    const query = { client_id: application.client_id, redirect_uri: at(application.redirect_uris, 0) };
    const page = await (await fetch(service.authorizeUrl(query))).text();
    expect(page).toContain('Any teammate may allow this application.');
    const conversations = await service.call<List<Thing>>('GET', '/conversations', partner);
    const path = `/conversations/${at(conversations.body._results, 0).id}/messages`;
    const [one, two] = [at(company.teammates, 0), at(company.teammates, 1)];
    const [first, second] = [one, two].map((teammate) => service.install(teammate, application).access_token);
    for (const [by = '', teammate, author, body] of [
      [first, one, one.id, { text: 'Hello' }],
      [second, two, two.id, { text: 'Hello' }],
      [second, two, one.id, { text: 'Hello', author_id: one.id }],
      [partner, undefined, undefined, { text: 'Hello' }],
    ] as const) {
      const me = (await service.call<{ teammate?: { id: string; name: string } }>('GET', '/me', by)).body;
      expect([me.teammate?.id, me.teammate?.name]).toEqual([teammate?.id, teammate?.name]);
      const message = await service.call<{ author: Thing | null }>('POST', path, by, body);
      expect(message.body.author?.id).toBe(author);
    }
    const { _results } = (await service.call<List<Thing>>('GET', '/inboxes', token)).body;
    const own = _results.find(({ teammate_id }) => teammate_id === one.id);
    expect((await service.api(own?._links.self ?? '', first ?? '')).status).toBe(403);
  });
});

describe('Events (our choice)', () => {
  test('An event is kept under its company and application, and read back as sent', async () => {
    const { service, company, token } = await startCompany();
    const { access_token } = service.install(company);
    const uid = service.sandbox.application.client_id;
    const [path, otherPath] = [uid, service.application().client_id].map(
      (id) => `/applications/${id}/events`,
    );
    const sent = { type: 'order.paid', object: { type: 'order', id: 4711 }, payload: { sum: 1 }, ours: true };
    const { status, body: event } = await service.call<Thing>('POST', `${path}`, access_token, sent);
    expect([status, event]).toMatchObject([202, { ...sent, application_uid: uid, status: 'accepted' }]);
    const read = (address: string) => service.call<List<Thing>>('GET', address, token);
    expect((await read(event._links.self)).body).toEqual(event);
    expect((await read(`${path}`)).body._results).toEqual([event]);
    expect((await read(`${otherPath}`)).body._results).toEqual([]);
    expect((await read(`${otherPath}/${event.id}`)).status).toBe(404);
    expect((await service.api(`${otherPath}`, access_token)).status, 'of another application').toBe(403);
    const stranger = at(service.company().api_tokens, 0).token;
    expect((await service.api(event._links.self, stranger)).status).toBe(404);
  });
});

const NAMED = { active: true, name: 'Parcel bot', address: '@parcels' };
const TOKEN = 'ext-sécret+&=%20';

type Respond = (response: ServerResponse) => unknown;

const json = (value: object) => (response: ServerResponse) => response.end(JSON.stringify(value));

/** A company whose application has a server that names channels. */
async function startNamed(respond: Respond = json(NAMED), options: SandboxOptions = {}) {
  const asked: [IncomingMessage, form: string][] = [];
  const server = createServer(async (request, response) => {
    asked.push([request, await text(request)]);
    respond(response.setHeader('content-type', 'application/json'));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/introspect`;
  const spec = { plan: 'enterprise', addon_rpm: 10_000 };
  const { service, company, token } = await startCompany(spec, options);
  const application = service.application({ introspection_url: `${url}?key=hush` });
  const path = `/inboxes/${at(company.inboxes, 0)}/channels`;
  const create = (settings: object = {}, body: object = {}, by = token) =>
    service.call<Thing>('POST', path, by, {
      type: 'application',
      settings: { token: TOKEN, application_uid: application.client_id, ...settings },
      ...body,
    });
  const calls = async () => (await fetch(`${service.sandbox.origin}/_sandbox/calls`)).json();
  const channels = async () => (await service.call<List<Thing>>('GET', path, token)).body._results;
  return { asked, url, service, company, application, create, calls, channels };
}

describe('Authentication', () => {
  test('10. A channel takes its name and address from the external service', async () => {
    const { asked, url, company, application, create, calls, channels } = await startNamed();
    const { status, body } = await create({ colour: 'teal' }, { name: 'Sent name', address: 'sent' });
    expect(status).toBe(201);
    expect(body).toMatchObject({ name: 'Parcel bot', address: '@parcels', type: 'application' });
    expect((await channels()).find(({ id }) => id === body.id)).toEqual(body);
    expect(JSON.stringify(body)).not.toContain(TOKEN);
    const [{ method, url: target, headers }, form] = at(asked, 0);
    const authorization = basic(application);
    expect([method, target, headers]).toMatchObject(['POST', '/introspect?key=hush', { authorization }]);
    expect([...new URLSearchParams(form)]).toEqual([['token', TOKEN]]);
    const row = { n: 1, at: START_MS, application: application.client_id, company_id: company.id };
    const call = { ...row, url, status: 200, outcome: 'active', duration_ms: expect.any(Number) };
    expect(await calls()).toEqual([call]);
  });
});

const FAILURES: [outcome: string, status: number | null, Respond][] = [
  ['inactive', 200, json({ active: false })],
  ['wrong status', 500, (response) => response.writeHead(500).end(JSON.stringify(NAMED))],
  ['redirect', 307, (response) => response.writeHead(307, { location: '/elsewhere' }).end()],
  ['not understood', 200, (response) => response.end('<p>active</p>')],
  ['not understood', 200, json({ ...NAMED, name: ' ' })],
  ['too large', null, json({ ...NAMED, more: 'x'.repeat(20_000) })],
  ['unreachable', null, (response) => response.destroy()],
  ['timeout', null, (response) => response.writeHead(200).write('{"active":')],
];

describe('Authentication (our choice)', () => {
  test('10. An external service that fails makes 422, and no channel', async () => {
    for (const [outcome, status, answer] of FAILURES) {
      const callTimeoutMs = outcome === 'timeout' ? 60 : 5_000;
      const { create, calls, channels } = await startNamed(answer, { callTimeoutMs });
      const before = await channels();
      expect([outcome, (await create()).status]).toEqual([outcome, 422]);
      expect(await channels()).toEqual(before);
      expect(await calls()).toMatchObject([{ outcome, status }]);
    }
  });

  test('10. The external service is on this machine, and the sandbox calls no other', async () => {
    const service = await startFrozen();
    const exposed = await startFrozen({ host: '0.0.0.0', expose: EXPOSE_WORDS });
    for (const introspection_url of ['http://LOCALHOST/x?a=b', 'http://[::1]:8080/']) {
      service.application({ introspection_url });
      expect(() => exposed.application({ introspection_url })).toThrow('calls no server');
    }
    const hosts = 'https://127.0.0.1 http://192.168.0.1 http://0.0.0.0 http://[::ffff:8.8.8.8]';
    const wrong = `${hosts} http://127.0.0.1.example.com http://user:pass@127.0.0.1 /introspect`;
    for (const introspection_url of wrong.split(' '))
      expect(() => service.application({ introspection_url })).toThrow('introspection_url');
  });
});

describe('Limits: other rate limits', () => {
  test('The server of an application is called 600 times a minute, and no more', async () => {
    const guards = { resource: { tier: '2', limit: 10_000, windowMs: 1_000 } };
    const { asked, url, service, application, create } = await startNamed(undefined, { guards });
    await Promise.all(Array.from({ length: 599 }, () => create()));
    service.advance(59_000);
    expect((await create()).status).toBe(201);
    const used = { application: application.client_id, limit: 600, remaining: 0 };
    expect(service.state()).toMatchObject({ call_limits: [{ ...used, reset_at: START_MS + 60_000 }] });
    const refused = await create();
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect(refused.headers.get('x-service-tier')).toBeNull();
    expect(asked).toHaveLength(600);
    const other = service.application({ introspection_url: url });
    expect((await create({ application_uid: other.client_id })).status).toBe(201);
    service.advance(1_000);
    expect((await create()).status).toBe(201);
  });
});
