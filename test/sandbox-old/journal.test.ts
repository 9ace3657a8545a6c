import { expect, test } from 'vitest';
import { Journal } from '../../src/sandbox/journal.ts';
import { at, START_MS, startFrozen } from '../sandbox/support/test-sandbox.ts';

test('each request to the service is a row; pages and control are none', async () => {
  const service = await startFrozen();
  const company = await service.company();
  const { access_token } = await service.install(company);
  await service.advance(5);
  await service.api('/contacts?limit=5', access_token);
  await service.api('/me', at(company.api_tokens, 0).token);
  await service.api('/me', 'unknown');
  await fetch(service.sandbox.origin);
  const rows = await service.journal();
  const { client_id } = service.sandbox.application;
  const row = { method: 'GET', query: {}, company_id: company.id, application: client_id, tier: null };
  expect(rows).toMatchObject([
    {
      ...row,
      n: 1,
      at: START_MS,
      method: 'POST',
      path: '/oauth/authorize',
      status: 303,
      query: {},
      remaining: null,
      fault: null,
    },
    { ...row, n: 2, method: 'POST', path: '/oauth/token', status: 200, remaining: null },
    { ...row, n: 3, at: START_MS + 5, path: '/contacts', query: { limit: '5' }, status: 200, remaining: 119 },
    { ...row, n: 4, path: '/me', application: null, remaining: 49 },
    { ...row, n: 5, path: '/me', status: 401, company_id: null, application: null, remaining: 50 },
  ]);
  for (const { duration_ms } of rows) expect(duration_ms).toBeGreaterThanOrEqual(0);
  expect((await service.journal(3)).map(({ n }) => n)).toEqual([4, 5]);
  expect(await service.journal(5)).toEqual([]);
});

test('no secret gets in', async () => {
  const service = await startFrozen();
  const company = await service.company();
  const code = await service.code(company);
  const { access_token, refresh_token } = (await (await service.exchange(code)).json()) as Record<
    string,
    string
  >;
  await fetch(service.authorizeUrl({ state: 'our-secret-state' }));
  await service.api(
    `/contacts?access_token=${access_token}&code=${code}&Client_Secret=hush`,
    access_token ?? '',
  );
  const text = JSON.stringify(await service.journal());
  const { client_secret } = service.sandbox.application;
  for (const secret of [code, access_token, refresh_token, client_secret, 'our-secret-state', 'hush']) {
    expect(text).not.toContain(secret);
  }
  expect(text).toContain('"state":"[hidden]"');
});

test('a token is hidden wherever it stands: in the path, in another parameter, as a name', async () => {
  const service = await startFrozen();
  const { access_token } = await service.install(await service.company());
  await service.api(`/contacts/${access_token}?q=Bearer%20${access_token}&${access_token}=1`, access_token);
  expect(JSON.stringify(await service.journal())).not.toContain(access_token);
});

test('a parameter that is given twice stands there twice', async () => {
  const service = await startFrozen();
  const { api_tokens } = await service.company();
  await service.api('/contacts?limit=5&limit=6', at(api_tokens, 0).token);
  expect(at(await service.journal(), 0).query).toEqual({ limit: ['5', '6'] });
});

test('the page token is no secret', async () => {
  const service = await startFrozen();
  const { api_tokens } = await service.company();
  await service.api('/contacts?page_token=abc', at(api_tokens, 0).token);
  expect(at(await service.journal(), 0).query).toEqual({ page_token: 'abc' });
});

test.each(['-1', 'x', '1.5'])('after=%s is a 400', async (after) => {
  const service = await startFrozen();
  expect((await fetch(`${service.sandbox.origin}/_sandbox/requests?after=${after}`)).status).toBe(400);
});

test('only the newest 100,000 are kept, and their numbers go on', () => {
  const journal = new Journal();
  for (let request = 1; request <= 100_002; request++) {
    journal.add({
      at: request,
      method: 'GET',
      path: '/me',
      search: '',
      status: 200,
      company_id: null,
      application: null,
      tier: null,
      remaining: null,
      fault: null,
      ignored: [],
      duration_ms: 0,
    });
  }
  const rows = journal.after(0);
  expect(rows).toHaveLength(100_000);
  expect(rows[0]).toMatchObject({ n: 3, at: 3 });
  expect(journal.after(100_001)).toMatchObject([{ n: 100_002, at: 100_002 }]);
});
