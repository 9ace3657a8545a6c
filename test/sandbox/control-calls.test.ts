import { describe, expect, test } from 'vitest';
import { SANDBOX_DEFAULTS } from '../../src/contract/sandbox.ts';
import '../../src/sandbox/vitest.ts';
import type { List } from './support/routes.ts';
import { at, START_MS, startCompany, startFrozen, startSandbox } from './support/test-sandbox.ts';

/** Bodies that the control calls refuse, with a word of the refusal. */
const WRONG = `
clock         {}                                                         needs advance_ms, set or frozen
clock         {"advance_ms":-1}                                          advance_ms
clock         {"advance_ms":9e15}                                        no further
clock         []                                                         expected object
companies     {"name":"","plan":"starter"}                               name
companies     {"name":"X","plan":"starter","contacts":1.5}               contacts
companies     {"name":"X","plan":"starter","people":5}                   people
applications  {"name":"X","redirect_uris":["/back"]}                     redirect_uris
applications  {"name":"X","redirect_uris":["javascript:alert(1)"]}       redirect_uris
applications  {"name":"X","redirect_uris":["http://x/"],"kind":"robot"}  kind
faults        {"fault":{}}                                               at least one thing
faults        {"fault":{"headers":{"a":"b\\r\\nc: d"}}}                  fault.headers
faults        {"fault":{"revoke":"grant","drop":"before"}}               takes no effect
faults        {"fault":{"records":{"resource":"tags","delete":1}}}       fault.records
faults        {"fault":{"status":500},"times":0}                         times
faults        {"fault":{"status":500},"match":{"nth":0}}                 match
guards        {"tier":"two words","requests":1,"per_ms":1}               tier
guards        {"tier":"x","requests":1,"per_ms":1,"paths":["x"]}         paths
restore       {"id":5}                                                   id
snapshot      {"name":"x"}                                               name
reset         {"name":"x"}                                               name
`;

describe('Control calls', () => {
  test('The state tells addresses, applications, companies, and where used limits stand', async () => {
    const redirectUris = ['http://app.example/oauth/callback'];
    const [service, again] = [await startFrozen({ redirectUris }), await startFrozen()];
    const { origin, apiUrl: api_url, authUrl: auth_url, application } = service.sandbox;
    expect([api_url, auth_url]).toEqual([`${origin}/api`, `${origin}/auth`]);
    const { clientId: client_id, clientSecret: client_secret } = SANDBOX_DEFAULTS;
    expect(application).toMatchObject({ client_id, client_secret });
    const hosts = application.redirect_uris.map((uri) => new URL(uri).host);
    expect(hosts).toEqual(['app.example', 'localhost:3000', '127.0.0.1:3000']);
    const { companies } = service.state();
    expect(companies.map(({ plan }) => plan)).toEqual(['starter', 'professional', 'enterprise']);
    expect(again.state().companies, 'the same in every sandbox').toEqual(companies);
    const { id, api_tokens } = at(companies, 0);
    await service.api('/me', at(api_tokens, 0).token);
    const limit = { company_id: id, scope: 'plan', limit: 50, remaining: 49, reset_at: START_MS + 60_000 };
    const applications = [
      { name: 'Partner app', kind: 'partner', scopes: ['shared_resources'], ...application },
    ];
    const limits = [{ ...limit, burst_limit: 25, burst_remaining: 25, burst_reset_at: null }];
    const state = await (await service.control('state', undefined, 'GET')).json();
    expect(state).toMatchObject({ api_url, auth_url, applications, limits });
  });

  test('A wrong body is refused, and the answer says what is wrong', async () => {
    const service = await startFrozen();
    const before = service.state();
    for (const line of WRONG.trim().split('\n')) {
      const [path = '', body = '', word] = line.split(/ {2,}/);
      const response = await service.control(path, JSON.parse(body));
      const message = expect.stringContaining(word ?? '');
      const answer = [line, await response.json()];
      expect(answer).toMatchObject([line, { _error: { status: 400, title: 'Bad Request', message } }]);
    }
    expect(service.state()).toEqual(before);
  });

  test('A POST must be JSON, and not too long; other paths are 404, other methods 405', async () => {
    const service = await startFrozen();
    for (const [status, type, body] of [
      [415, 'text/plain', '{"advance_ms":5}'],
      [415, 'application/x-www-form-urlencoded', 'advance_ms=5'],
      [400, 'application/json', '{"advance_ms":'],
      [413, 'application/json', `{"set":"${'x'.repeat(2 ** 21)}"}`],
    ] as const) {
      const init = { method: 'POST', headers: { 'content-type': type }, body };
      expect((await fetch(`${service.sandbox.origin}/_sandbox/clock`, init)).status).toBe(status);
    }
    expect(service.state().now).toBe(START_MS);
    expect((await service.control('nothing', {})).status).toBe(404);
    const put = await service.control('state', {}, 'PUT');
    expect([put.status, put.headers.get('allow')]).toEqual([405, expect.stringContaining('GET')]);
  });

  test('reset leads back to the start at once, however many records there are', async () => {
    const service = await startSandbox();
    const { now: _, ...before } = service.state();
    const company = service.company({ contacts: 1_000_000 });
    const { access_token } = service.install(company, service.application());
    await service.api('/me', access_token);
    await service.done('faults', { fault: { status: 500 }, times: 5 });
    await service.done('guards', { tier: 'lists', requests: 1, per_ms: 1_000 });
    service.freeze();
    const startedAt = performance.now();
    await service.done('reset', {});
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    const { now, ...after } = service.state();
    expect([after, service.journal()]).toEqual([before, []]);
    expect(Math.abs(now - Date.now())).toBeLessThan(5_000);
    expect(await service.statuses(2, '/me', access_token)).toEqual([401, 401]);
  });
});

describe('The journal', () => {
  test('Each request to the API and the OAuth routes is a row; other requests are none', async () => {
    const { service, company, token } = await startCompany();
    const form = { teammate_id: at(company.teammates, 0).id, decision: 'approve' };
    const location = (await service.decide(form)).headers.get('location') ?? '';
    const code = new URL(location).searchParams.get('code') ?? '';
    const { access_token } = (await service.exchange(code)).body;
    service.advance(5);
    await service.api('/contacts?limit=5&note=a&note=b', access_token);
    await service.call('POST', '/analytics/reports', token, {});
    await service.api('/me', 'unknown');
    await fetch(service.sandbox.origin);
    const application = service.sandbox.application.client_id;
    const row = { method: 'GET', query: {}, company_id: company.id, application, tier: null, fault: null };
    const query = { limit: '5', note: ['a', 'b'] };
    const rows = [
      { ...row, n: 1, at: START_MS, method: 'POST', path: '/oauth/authorize', status: 303, remaining: null },
      { ...row, n: 2, method: 'POST', path: '/oauth/token', status: 200, remaining: null },
      { ...row, n: 3, at: START_MS + 5, path: '/contacts', query, status: 200, remaining: 119 },
      { ...row, n: 4, method: 'POST', status: 201, application: null, tier: '1', remaining: 49 },
      { ...row, n: 5, path: '/me', status: 401, company_id: null, application: null, remaining: 50 },
    ];
    expect(service.journal()).toMatchObject(rows);
    expect(await service.done('requests?after=3', undefined, 'GET')).toMatchObject(rows.slice(3));
    expect((await service.control('requests?after=-1', undefined, 'GET')).status).toBe(400);
  });

  test('It tells query parameters and members of a body that the service ignored', async () => {
    const { service, company, token } = await startCompany();
    await service.call('GET', '/contacts?limit=5&colour=red&colour=blue', token);
    await service.call('GET', '/me?limit=5', token);
    await service.call('POST', '/links?colour=red', token, { name: 'x', colour: 'red', Name: 'y' });
    const wrong = { type: 'no type', token };
    await service.call('POST', `/inboxes/${at(company.inboxes, 0)}/channels`, token, wrong);
    await service.call('GET', '/contacts?colour=red', 'no token');
    await fetch(service.authorizeUrl({ scope: 'read' }));
    await service.token({ grant_type: 'refresh_token', refresh_token: 'x', scope: 'read' });
    const ignored = service.journal().map((row) => row.ignored.join());
    const link = 'query colour,body colour,body Name';
    expect(ignored).toEqual([
      'query colour',
      'query limit',
      link,
      'body token',
      '',
      'query scope',
      'body scope',
    ]);
  });

  test('No secret gets in, wherever it stands; a page token is none', async () => {
    const { service, company } = await startCompany();
    const code = service.code(company);
    const { access_token: token, refresh_token: renewal } = (await service.exchange(code)).body;
    const base64 = encodeURIComponent('MX8SE7vBQO8iEWM/qNpgvN4vRDZ6PAEdQdqJh1V9S+U=');
    await fetch(service.authorizeUrl({ state: 'our-secret-state' }));
    await service.api(`/contacts?access_token=${token}&code=${code}&Client_Secret=hush`, token);
    await service.api(`/contacts/${token}?q=Bearer%20${token}&${token}=1&page_token=${renewal}`, token);
    await service.api(`/contacts/${base64}?note=${base64}&page_token=abc`, token);
    const journal = JSON.stringify(service.journal());
    const { client_secret } = service.sandbox.application;
    const secrets = [code, token, renewal, client_secret, 'our-secret', 'hush', 'MX8SE7vB', 'qNpgvN4v'];
    for (const secret of secrets) expect(journal).not.toContain(secret);
    expect(journal).toContain('"state":"[hidden]"');
    expect(journal).toContain('"page_token":"abc"');
    const details = JSON.stringify(service.sandbox.requests({ details: true }));
    for (const secret of secrets.slice(0, 6)) expect(details).not.toContain(secret);
    expect(details).toContain('"refresh_token":"[hidden]"');
    const bodies = [
      ['text/plain', 'client_secret=hush'],
      ['application/json', '{"client_secret":["hush"]'],
      ['application/json', '{"client_secret":["hush"]}'],
      ['application/json', `{"code_verifier":"hush","x":"${' x'.repeat(40_000)}"}`],
    ] as const;
    for (const [type, body] of bodies) {
      const headers = { 'content-type': type, 'x-api-key': 'hush', authorization: `Bearer ${token}` };
      await fetch(`${service.sandbox.apiUrl}/links`, { method: 'POST', headers, body });
    }
    expect(() => service.sandbox.received({ headers: { authorization: 'x' } })).toThrow(
      'headers.authorization: "x" was wanted, and a secret came',
    );
    expect(() => service.sandbox.received({ body: { client_secret: 'x' } })).toThrow('and a secret came');
    const more = service.sandbox.requests({ after: 5, details: true });
    expect(more).toHaveLength(bodies.length);
    expect(JSON.stringify(more)).not.toContain('hush');
  });

  test('It shows headers and bodies when it is asked, 64 KB of each', async () => {
    const { service, token } = await startCompany();
    const reply = { body: 'Hi', metadata: { external_id: '4be0643f-1d98-573b-97cd-ca98a65347dd' } };
    await service.call('POST', '/links', token, { name: 'x', note: reply });
    await service.call('POST', '/links', token, { name: 'x '.repeat(35_000), api_token: 'hush' });
    await service.api('/contacts?limit=1', token);
    await service.api('/contacts', token);
    const [link, long, list, page, ...more] = service.sandbox.requests({ details: true });
    expect(more).toEqual([]);
    expect(link).toMatchObject({
      request: { headers: { authorization: '[hidden]' }, body: { name: 'x', note: reply } },
      answer: { headers: { 'content-type': expect.stringContaining('json') }, body: { note: reply } },
    });
    expect(long?.request?.body).toMatch(/^\{"name":"[x ]+$/);
    expect(long?.request?.body).toHaveLength(64 * 1024);
    expect(list).toMatchObject({ request: { body: null }, answer: { body: { _results: [{}] } } });
    expect(page?.answer?.body).toBe('[longer than 8 KiB]');
    const asked = 'requests?after=1&limit=1&details=true';
    expect(await service.done(asked, undefined, 'GET')).toEqual([long]);
    expect(service.sandbox.requests({ path: '/contacts' })[0], 'not asked').not.toHaveProperty('request');
  });

  test('It keeps 16 MB of bodies, the newest', async () => {
    const { service, token } = await startCompany();
    const big = { name: 'x '.repeat(450_000) };
    for (let n = 0; n < 20; n++) await service.call('POST', '/links', token, big);
    const rows = service.sandbox.requests({ details: true });
    expect(rows).toHaveLength(20);
    expect([rows[0]?.request, rows[0]?.answer]).toEqual([null, null]);
    expect(rows.at(-1)?.request?.body).toMatch(/^\{"name":"x x/);
  });
});

describe('A request that a test waits for', () => {
  test('Its body may be nested as deep as you like', async () => {
    const { service, token } = await startCompany();
    const deep = `{"name":"x","note":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    await fetch(`${service.sandbox.apiUrl}/links`, { method: 'POST', headers, body: deep });
    expect(service.sandbox.received({ body: { name: 'x' } }).request?.body).toContain('too deep');
  });

  const PATH = '/conversations/:conversation_id/messages';

  test('It is found by what it is to have, or the nearest is named', async () => {
    const { service, token } = await startCompany();
    const { sandbox } = service;
    expect(() => sandbox.received({})).toThrow('No request has come yet.');
    await service.call('GET', '/contacts?limit=5', token);
    const talk = (await service.call<List>('GET', '/conversations', token)).body._results[0]?.id;
    const reply = { body: 'Hi', options: { tag_ids: [], archive: false }, metadata: { id: 7 } };
    await service.call('POST', `/conversations/${talk}/messages`, token, reply);
    const post = { method: 'post', path: PATH };
    expect(sandbox.received({ ...post, body: { body: 'Hi', options: { tag_ids: [] } } })).toMatchObject({
      ...{ n: 3, status: 201, request: { body: reply } },
    });
    for (const wanted of [
      { path: '/contacts', query: { limit: '5' }, headers: { Authorization: `Bearer ${token}` } },
      { body: { body: /^h/i, metadata: { id: expect.any(Number) } }, status: 201 },
      { method: 'GET', times: 2 },
      { query: expect.objectContaining({ limit: '5' }), status: undefined },
    ]) {
      expect(sandbox).toHaveReceived(wanted);
    }
    expect(sandbox).not.toHaveReceived({ ...post, body: { body: 'Hello' } });
    expect(() => sandbox.received({ ...post, body: { body: 'Hello', metadata: { id: '7' } } })).toThrow(
      `No request is as wanted (POST ${PATH}). The nearest of 3 is 3, POST /conversations/${talk}/messages:
  body.body: "Hello" was wanted, and "Hi" came
  body.metadata.id: "7" was wanted, and 7 came`,
    );
    expect(() => sandbox.received({ body: {}, path: '/contacts' })).toThrow(
      'body: {} was wanted, and null came',
    );
    expect(() => sandbox.received({ ...post, body: { body: expect.stringMatching(/^Ho/) } })).toThrow(
      '/^Ho/',
    );
    expect(() => sandbox.received({ method: 'GET', times: 3 })).toThrow('2 requests are as wanted');
    expect(() => expect(sandbox).not.toHaveReceived(post)).toThrow(`Request 3, POST /conversations/${talk}`);
    const uuid = '4be0643f-1d98-573b-97cd-ca98a65347dd';
    const long = 'a'.repeat(40);
    for (const id of [uuid, long]) {
      await service.call('GET', `/contacts/${id}`, token);
      expect(sandbox.received({ path: `/contacts/${id}` })).toMatchObject({ status: 404 });
      expect(sandbox.requests({ path: `/contacts/${id}` })).toHaveLength(1);
    }
    expect(JSON.stringify(sandbox.requests())).not.toContain(long);
    expect(JSON.stringify(sandbox.requests())).toContain(uuid);
    const answer = await service.control('received', { path: '/tags', status: 200 });
    expect([answer.status, await answer.text()]).toEqual([
      404,
      expect.stringContaining('The nearest of 5 is'),
    ]);
  });
});
