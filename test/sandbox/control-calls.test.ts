import { describe, expect, test } from 'vitest';
import { SANDBOX_DEFAULTS } from '../../src/contract/sandbox.ts';
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
  });
});
