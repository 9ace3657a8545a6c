import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { EXPOSE_WORDS } from '../../src/contract/sandbox.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { answerJson, startIntrospectionServer } from './support/introspection-server.ts';
import {
  at,
  basic,
  type Credentials,
  START_MS,
  startFrozen,
  type TestSandbox,
} from './support/test-sandbox.ts';

interface List<T> {
  _results: T[];
}

interface Thing {
  id: string;
  teammate_id: string | null;
  _links: { self: string };
}

describe('Authentication', () => {
  test('3. Any teammate authorizes a tool-protocol application, whose token is that one’s', async () => {
    const service = await startFrozen();
    const company = await service.company();
    const partner = await service.install(company);
    const application = await service.application({ kind: 'tool-protocol' });
    const parameters = { client_id: application.client_id, redirect_uri: at(application.redirect_uris, 0) };
    const page = await (await fetch(service.authorizeUrl(parameters))).text();
    expect(page).toContain('Any teammate may allow this application.');
    const conversations = await service.call<List<Thing>>('GET', '/conversations', partner.access_token);
    const path = `/conversations/${at(conversations.body._results, 0).id}/messages`;
    const [one, two] = [at(company.teammates, 0), at(company.teammates, 1)];
    const { access_token } = await service.install(company, application, one.id);
    const others = await service.install(company, application, two.id);
    for (const [token, teammate, author, body] of [
      [access_token, one, one.id, { text: 'Hello' }],
      [others.access_token, two, two.id, { text: 'Hello' }],
      [others.access_token, two, one.id, { text: 'Hello', author_id: one.id }],
      [partner.access_token, undefined, undefined, { text: 'Hello' }],
    ] as const) {
      const me = (await service.call<{ teammate?: { id: string; name: string } }>('GET', '/me', token)).body;
      expect([me.teammate?.id, me.teammate?.name]).toEqual([teammate?.id, teammate?.name]);
      const message = await service.call<{ author: Thing | null }>('POST', path, token, body);
      expect(message.body.author?.id).toBe(author);
    }
  });
});

describe('Authentication (our choice)', () => {
  test('A tool-protocol token reaches no private things, not even its teammate’s', async () => {
    const service = await startFrozen();
    const company = await service.company();
    const application = await service.application({ kind: 'tool-protocol' });
    const { access_token } = await service.install(company, application);
    const { token } = at(company.api_tokens, 0);
    const { _results } = (await service.call<List<Thing>>('GET', '/inboxes', token)).body;
    const own = _results.find(({ teammate_id }) => teammate_id === at(company.teammates, 0).id);
    expect((await service.api(own?._links.self ?? '', access_token)).status).toBe(403);
    expect((await service.api('/contacts', access_token)).status).toBe(200);
  });
});

describe('Events (our choice)', () => {
  test('An event is kept under its company and application, and read back as sent', async () => {
    const service = await startFrozen();
    const [company, other] = [await service.company(), await service.application()];
    const { token } = at(company.api_tokens, 0);
    const { access_token } = await service.install(company);
    const uid = service.sandbox.application.client_id;
    const [path, otherPath] = [`/applications/${uid}/events`, `/applications/${other.client_id}/events`];
    const sent = {
      type: 'order.paid',
      object: { type: 'order', id: 4711 },
      payload: { sum: 12.5 },
      ours: true,
    };
    const { status, body: event } = await service.call<Thing>('POST', path, access_token, sent);
    expect([status, event]).toMatchObject([202, { ...sent, application_uid: uid, status: 'accepted' }]);
    expect((await service.call('GET', event._links.self, token)).body).toEqual(event);
    expect((await service.call<List<Thing>>('GET', path, token)).body._results).toEqual([event]);
    expect((await service.call<List<Thing>>('GET', otherPath, token)).body._results).toEqual([]);
    expect((await service.api(`${otherPath}/${event.id}`, token)).status).toBe(404);
    expect((await service.api(otherPath, access_token)).status, 'of another application').toBe(403);
    const stranger = at((await service.company()).api_tokens, 0).token;
    expect((await service.api(event._links.self, stranger)).status).toBe(404);
  });
});

const NAMED = { active: true, name: 'Parcel bot', address: '@parcels' };
const TOKEN = 'ext-sécret+&=%20';

/** A company whose application has a server that names channels. */
async function startNamed(
  answer = (response: ServerResponse) => answerJson(response, NAMED),
  options: SandboxOptions = {},
) {
  const server = await startIntrospectionServer(answer);
  const service = await startFrozen(options);
  const company = await service.company({ plan: 'enterprise', addon_rpm: 10_000 });
  const application = await service.application({ introspection_url: `${server.url}?key=hush` });
  const path = `/inboxes/${at(company.inboxes, 0)}/channels`;
  const { token } = at(company.api_tokens, 0);
  const create = (settings: object = {}, body: object = {}, by = token) =>
    service.call<Thing>('POST', path, by, {
      type: 'application',
      settings: { token: TOKEN, application_uid: application.client_id, ...settings },
      ...body,
    });
  const calls = async () => (await fetch(`${service.sandbox.origin}/_sandbox/calls`)).json();
  const channels = async () => (await service.call<List<Thing>>('GET', path, token)).body._results;
  return { server, service, company, application, create, calls, channels };
}

describe('Authentication', () => {
  test('10. A channel takes its name and address from the external service', async () => {
    const { server, company, application, create, calls, channels } = await startNamed();
    const { status, body } = await create({ colour: 'teal' }, { name: 'Sent name', address: 'sent' });
    expect(status).toBe(201);
    expect(body).toMatchObject({ name: 'Parcel bot', address: '@parcels', type: 'application' });
    expect((await channels()).find(({ id }) => id === body.id)).toEqual(body);
    expect(JSON.stringify(body)).not.toContain(TOKEN);
    const { method, url, headers, body: form } = at(server.asked, 0);
    expect([method, url]).toEqual(['POST', '/introspect?key=hush']);
    expect(headers.authorization).toBe(basic(application));
    expect([...new URLSearchParams(form)]).toEqual([['token', TOKEN]]);
    const row = { n: 1, at: START_MS, application: application.client_id, company_id: company.id };
    const call = { ...row, url: server.url, status: 200, outcome: 'active', duration_ms: expect.any(Number) };
    expect(await calls()).toEqual([call]);
  });
});

const FAILURES: [string, number | null, (response: ServerResponse) => void][] = [
  ['inactive', 200, (response) => answerJson(response, { active: false })],
  ['wrong status', 500, (response) => answerJson(response, NAMED, 500)],
  ['redirect', 307, (response) => response.writeHead(307, { location: '/elsewhere' }).end()],
  ['not understood', 200, (response) => response.end('<p>active</p>')],
  ['not understood', 200, (response) => answerJson(response, { ...NAMED, name: ' ' })],
  ['too large', null, (response) => answerJson(response, { ...NAMED, more: 'x'.repeat(20_000) })],
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

  test('10. Nobody is asked about another type, or without a token', async () => {
    const { server, service, company, application, create } = await startNamed();
    const sent = { name: 'Sent name', address: 'sent' };
    expect((await create({}, { ...sent, type: 'custom' })).body).toMatchObject(sent);
    expect((await create({ token: undefined }, sent)).body).toMatchObject(sent);
    expect((await create({ token: 5 })).status).toBe(422);
    expect((await create({ application_uid: 'app_none' })).status).toBe(422);
    const { access_token } = await service.install(company);
    expect((await create({ application_uid: application.client_id }, {}, access_token)).status).toBe(403);
    expect(server.asked).toEqual([]);
  });

  test('10. The external service is on this machine, where alone the sandbox listens, too', async () => {
    const wrong = [
      'https://127.0.0.1/',
      'http://192.168.0.1/',
      'http://0.0.0.0/',
      'http://[::ffff:8.8.8.8]/',
    ];
    const worse = ['http://127.0.0.1.example.com/', 'http://user:pass@127.0.0.1/', '/introspect'];
    const application = { name: 'X', redirect_uris: ['http://x.example/'] };
    const statuses = async (service: TestSandbox, urls: string[]) => {
      const registered = urls.map((introspection_url) =>
        service.control('applications', { ...application, introspection_url }),
      );
      return (await Promise.all(registered)).map(({ status }) => status);
    };
    const service = await startFrozen();
    expect(await statuses(service, ['http://LOCALHOST/x?a=b', 'http://[::1]:8080/'])).toEqual([201, 201]);
    expect(new Set(await statuses(service, [...wrong, ...worse]))).toEqual(new Set([400]));
    const exposed = await startFrozen({ host: '0.0.0.0', expose: EXPOSE_WORDS });
    expect(await statuses(exposed, ['http://127.0.0.1:4711/'])).toEqual([403]);
  });
});

describe('Limits: other rate limits', () => {
  test('The server of an application is called 600 times a minute, and no more', async () => {
    const guards = { resource: { tier: '2', limit: 10_000, windowMs: 1_000 } };
    const { server, service, application, create } = await startNamed(undefined, { guards });
    await Promise.all(Array.from({ length: 599 }, () => create()));
    await service.advance(59_000);
    expect((await create()).status).toBe(201);
    const used = { application: application.client_id, limit: 600, remaining: 0 };
    expect(await service.state()).toMatchObject({ call_limits: [{ ...used, reset_at: START_MS + 60_000 }] });
    const refused = await create();
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect(refused.headers.get('x-service-tier')).toBeNull();
    expect(server.asked).toHaveLength(600);
    const other: Credentials = await service.application({ introspection_url: server.url });
    expect((await create({ application_uid: other.client_id })).status).toBe(201);
    await service.advance(1_000);
    expect((await create()).status).toBe(201);
  });
});
