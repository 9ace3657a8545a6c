import { expect, test } from 'vitest';
import { API } from '../../src/contract/api/api.ts';
import { startSandbox } from '../sandbox/support/test-sandbox.ts';

test('says what it is, where it is and who is in it', async () => {
  const service = await startSandbox();
  const response = await fetch(service.sandbox.origin);
  const html = await response.text();
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  const { companies } = await service.state();
  const { apiUrl, authUrl, application } = service.sandbox;
  for (const text of [apiUrl, authUrl, application.client_id]) expect(html).toContain(text);
  for (const { id, teammates } of companies) {
    expect(html).toContain(id);
    for (const { name } of teammates) expect(html).toContain(name);
  }
  expect(html).not.toContain(application.client_secret);
  expect(html).toContain('There is no refresh token yet');
});

test('faults can be ordered for every route, and for those of OAuth', async () => {
  const service = await startSandbox();
  const html = await (await fetch(service.sandbox.origin)).text();
  for (const { method, path } of Object.values(API)) {
    expect(html).toContain(`<option value="${method} ${path}">`);
  }
  expect(html).toContain('<option value="POST /oauth/token">');
});

test.each([
  ['/sandbox.css', 'text/css'],
  ['/front.js', 'text/javascript'],
  ['/panel/clock.js', 'text/javascript'],
])('%s is served', async (path, type) => {
  const service = await startSandbox();
  const response = await fetch(`${service.sandbox.origin}${path}`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toContain(type);
});

test.each(['/panel/none.js', '/panel/clock.eta', '/panel/..%2Ffront.js', '/sandbox.ts'])(
  '%s is not there',
  async (path) => {
    const service = await startSandbox();
    expect((await fetch(`${service.sandbox.origin}${path}`)).status).toBe(404);
  },
);

test('names are escaped', async () => {
  const service = await startSandbox();
  await service.company({ name: '<script>alert(1)</script>' });
  const html = await (await fetch(service.sandbox.origin)).text();
  expect(html).toContain('&lt;script&gt;alert(1)');
  expect(html).not.toContain('<script>alert');
});
