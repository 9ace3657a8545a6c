import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import type { CallRow } from '../../src/sandbox/outgoing.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { answerJson, startIntrospectionServer } from '../sandbox/support/introspection-server.ts';
import { at, basic, type Credentials, START_MS, startFrozen } from '../sandbox/support/test-sandbox.ts';

const NAMED = { active: true, name: 'Parcel bot', address: '@parcels' };
const TOKEN = 'ext-sécret+&=%20';

interface Channel {
  id: string;
  name: string;
  address: string | null;
  settings: object;
}

async function start(answer: (response: ServerResponse) => void, options: SandboxOptions = {}) {
  const server = await startIntrospectionServer(answer);
  const service = await startFrozen(options);
  const company = await service.company();
  const application = await service.application({ introspection_url: server.url });
  const { access_token } = await service.install(company, application);
  const path = `/inboxes/${at(company.inboxes, 0)}/channels`;
  const create = (settings: object, body: object = {}, token = access_token) =>
    service.call<Channel>('POST', path, token, { type: 'application', settings, ...body });
  const calls = async (after = 0) =>
    (await (await fetch(`${service.sandbox.origin}/_sandbox/calls?after=${after}`)).json()) as CallRow[];
  const channels = async () =>
    (await service.call<{ _results: Channel[] }>('GET', path, access_token)).body._results;
  return { server, service, company, application, access_token, path, create, calls, channels };
}

test('an external service gives a channel its name and address', async () => {
  const { server, service, application, create, channels } = await start((response) =>
    answerJson(response, NAMED),
  );
  const { status, body } = await create({ token: TOKEN }, { name: 'Sent name', address: 'sent' });
  expect(status).toBe(201);
  expect(body).toMatchObject({ name: 'Parcel bot', address: '@parcels', type: 'application' });
  expect((await channels()).find(({ id }) => id === body.id)).toEqual(body);
  expect(server.asked).toHaveLength(1);
  const asked = at(server.asked, 0);
  expect([asked.method, asked.url]).toEqual(['POST', '/introspect']);
  expect(asked.headers.authorization).toBe(basic(application));
  expect(asked.headers['content-type']).toBe('application/x-www-form-urlencoded');
  expect([...new URLSearchParams(asked.body)]).toEqual([['token', TOKEN]]);
  expect((await service.journal()).at(-2)).toMatchObject({ method: 'POST', status: 201 });
});

test('the token of an external service is not kept with the channel', async () => {
  const { create, channels } = await start((response) => answerJson(response, NAMED));
  const { body } = await create({ token: TOKEN, colour: 'teal' });
  expect(body.settings).toEqual({ colour: 'teal' });
  expect(JSON.stringify(await channels())).not.toContain(TOKEN);
});

const FAILURES: [string, string, number | null, RegExp, (response: ServerResponse) => void][] = [
  [
    'says that the token is not active',
    'inactive',
    200,
    /not active/,
    (response) => answerJson(response, { active: false }),
  ],
  ['answers an error', 'wrong status', 500, /status 500/, (response) => answerJson(response, NAMED, 500)],
  [
    'answers another success',
    'wrong status',
    201,
    /status 201/,
    (response) => answerJson(response, NAMED, 201),
  ],
  [
    'redirects',
    'redirect',
    307,
    /redirect/,
    (response) => response.writeHead(307, { location: '/elsewhere' }).end(JSON.stringify(NAMED)),
  ],
  ['answers no JSON', 'not understood', 200, /JSON object/, (response) => response.end('<p>active</p>')],
  ['answers no object', 'not understood', 200, /JSON object/, (response) => answerJson(response, [NAMED])],
  [
    'names no address',
    'not understood',
    200,
    /JSON object/,
    (response) => answerJson(response, { active: true, name: 'Parcel bot' }),
  ],
  [
    'gives a blank name',
    'not understood',
    200,
    /JSON object/,
    (response) => answerJson(response, { ...NAMED, name: ' ' }),
  ],
  [
    'answers too much',
    'too large',
    null,
    /too much/,
    (response) => answerJson(response, { ...NAMED, more: 'x'.repeat(20_000) }),
  ],
  ['closes the connection', 'unreachable', null, /reached/, (response) => response.destroy()],
];

test.each(FAILURES)(
  'when the external service %s, it is 422, and there is no channel',
  async (_, outcome, callStatus, message, answer) => {
    const { server, create, calls, channels } = await start(answer);
    const before = await channels();
    const { status, body } = await create({ token: TOKEN });
    expect(status).toBe(422);
    expect(body).toMatchObject({ _error: { status: 422, message: expect.stringMatching(message) } });
    expect(await channels()).toEqual(before);
    expect(server.asked).toHaveLength(1);
    expect(await calls()).toMatchObject([{ outcome, status: callStatus }]);
  },
);

test.each([
  ['nothing', () => {}],
  ['half of an answer', (response: ServerResponse) => void response.writeHead(200).write('{"active":')],
])('when the external service sends %s in time, it is 422', async (_, answer) => {
  const { create, calls, channels } = await start(answer, { callTimeoutMs: 60 });
  const before = await channels();
  const { status, body } = await create({ token: TOKEN });
  expect(status).toBe(422);
  expect(body).toMatchObject({ _error: { message: expect.stringContaining('within 60 milliseconds') } });
  expect(await channels()).toEqual(before);
  const call = at(await calls(), 0);
  expect(call).toMatchObject({ outcome: 'timeout', status: null });
  expect(call.duration_ms).toBeGreaterThan(50);
});

test('a server that is not there is 422', async () => {
  const { service, company, path, calls } = await start(() => {});
  const application = await service.application({ introspection_url: 'http://127.0.0.1:1/' });
  const { access_token } = await service.install(company, application);
  const body = { type: 'application', settings: { token: TOKEN } };
  expect((await service.call('POST', path, access_token, body)).status).toBe(422);
  expect(await calls()).toMatchObject([{ outcome: 'unreachable', application: application.client_id }]);
});

test('outgoing calls are listed, without token, credentials and query', async () => {
  const { server, service, company, path, calls } = await start((response) => answerJson(response, NAMED));
  const introspection_url = `http://localhost:${server.port}/introspect/x?key=hush`;
  const application = await service.application({ introspection_url });
  const { access_token } = await service.install(company, application);
  await service.advance(1_500);
  const settings = { token: TOKEN };
  for (let call = 0; call < 2; call++) {
    await service.call('POST', path, access_token, { type: 'application', settings });
  }
  expect(at(server.asked, 0).url).toBe('/introspect/x?key=hush');
  const rows = await calls();
  expect(rows).toEqual(
    [1, 2].map((n) => ({
      n,
      at: START_MS + 1_500,
      application: application.client_id,
      company_id: company.id,
      url: `http://localhost:${server.port}/introspect/x`,
      status: 200,
      outcome: 'active',
      duration_ms: expect.any(Number),
    })),
  );
  expect(await calls(1)).toEqual(rows.slice(1));
  const bad = await fetch(`${service.sandbox.origin}/_sandbox/calls?after=x`);
  expect(bad.status).toBe(400);
  await service.done('reset', {});
  expect(await calls()).toEqual([]);
});

test('nobody is asked about another type, without a token, or without an introspection address', async () => {
  const { server, service, company, path, create, calls } = await start((response) =>
    answerJson(response, NAMED),
  );
  const sent = { name: 'Sent name', address: 'sent' };
  expect((await create({ token: TOKEN }, { ...sent, type: 'custom' })).body).toMatchObject(sent);
  expect((await create({}, sent)).body).toMatchObject(sent);
  const { access_token } = await service.install(company);
  const body = { type: 'application', settings: { token: TOKEN }, ...sent };
  const other = await service.call('POST', path, access_token, body);
  expect([other.status, other.body]).toMatchObject([201, sent]);
  expect([server.asked, await calls()]).toEqual([[], []]);
});

test('with an API token, the settings name the application', async () => {
  const { server, company, application, create } = await start((response) => answerJson(response, NAMED));
  const { token } = at(company.api_tokens, 0);
  const settings = { token: TOKEN, application_uid: application.client_id };
  expect((await create(settings, {}, token)).body).toMatchObject({ name: 'Parcel bot' });
  expect((await create({ ...settings, application_uid: 'app_none' }, {}, token)).status).toBe(422);
  expect(server.asked).toHaveLength(1);
});

test('an application creates no channel of another one', async () => {
  const { server, service, company, application, create } = await start((response) =>
    answerJson(response, NAMED),
  );
  const { access_token } = await service.install(company);
  const settings = { token: TOKEN, application_uid: application.client_id };
  expect((await create(settings, {}, access_token)).status).toBe(403);
  expect(server.asked).toEqual([]);
});

test('a token that is no text is refused before anyone is asked', async () => {
  const { server, create } = await start((response) => answerJson(response, NAMED));
  for (const token of [5, '', null, {}]) expect((await create({ token })).status).toBe(422);
  expect(server.asked).toEqual([]);
});

/** A sandbox in which nothing but the limit on calls to applications' servers stops anyone. */
async function startUnlimited() {
  const guards = { resource: { tier: '2', limit: 10_000, windowMs: 1_000 } };
  const started = await start((response) => answerJson(response, NAMED), { guards });
  const { service, application } = started;
  const company = await service.company({ plan: 'enterprise', addon_rpm: 10_000 });
  const { token } = at(company.api_tokens, 0);
  const path = `/inboxes/${at(company.inboxes, 0)}/channels`;
  const create = (of: Credentials = application) =>
    service.call<Channel & { _error?: { message: string } }>('POST', path, token, {
      type: 'application',
      settings: { token: TOKEN, application_uid: of.client_id },
    });
  const statuses = (count: number) =>
    Promise.all(Array.from({ length: count }, async () => (await create()).status));
  return { ...started, create, statuses };
}

test('an application’s server is called 600 times a minute, and no more', async () => {
  const { server, service, application, create, statuses, calls } = await startUnlimited();
  expect(new Set(await statuses(599))).toEqual(new Set([201]));
  await service.advance(59_000);
  expect((await create()).status).toBe(201);
  const limit = { application: application.client_id, limit: 600, remaining: 0, reset_at: START_MS + 60_000 };
  expect(await service.state()).toMatchObject({ call_limits: [limit] });

  const refused = await create();
  expect(refused.status).toBe(429);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(refused.body._error?.message).toContain('1000 milliseconds');
  expect(Number(refused.headers.get('x-ratelimit-remaining'))).toBeGreaterThan(0);
  expect(server.asked).toHaveLength(600);
  expect((await calls(600)).map(({ n, outcome, status }) => [n, outcome, status])).toEqual([
    [601, 'limit', null],
  ]);

  const other = await service.application({ introspection_url: server.url });
  expect((await create(other)).status).toBe(201);
  await service.advance(1_000);
  expect((await create()).status).toBe(201);
  expect(server.asked).toHaveLength(602);
  const next = { ...limit, remaining: 599, reset_at: START_MS + 120_000 };
  expect(await service.state()).toMatchObject({ call_limits: expect.arrayContaining([next]) });
});

test('a snapshot holds how often a server was called', async () => {
  const { service, create } = await startUnlimited();
  await create();
  const { id } = await service.done<{ id: string }>('snapshot', {});
  const before = (await service.state()) as unknown as { call_limits: unknown };
  expect(before.call_limits).toMatchObject([{ remaining: 599 }]);
  await create();
  expect(await service.state()).toMatchObject({ call_limits: [{ remaining: 598 }] });
  await service.done('restore', { id });
  expect(await service.state()).toMatchObject({ call_limits: before.call_limits });
});
