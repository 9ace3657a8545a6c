import { expect, test } from 'vitest';
import { EXPOSE_WORDS } from '../../src/contract/sandbox.ts';
import { startFrozen } from '../sandbox/support/test-sandbox.ts';

test.each([
  'http://127.0.0.1:4711/introspect',
  'http://LOCALHOST/x?a=b',
  'http://[::1]:8080/',
  'http://127.1:80/',
])('an introspection address on this machine is taken: %s', async (introspection_url) => {
  const service = await startFrozen();
  expect(await service.application({ introspection_url })).toMatchObject({ introspection_url });
});

test.each([
  'https://127.0.0.1/',
  'http://192.168.0.1/',
  'http://0.0.0.0/',
  'http://169.254.169.254/latest',
  'http://example.com/',
  'http://localhost.example.com/',
  'http://127.0.0.1.example.com/',
  'http://127.0.0.1@example.com/',
  'http://user:pass@127.0.0.1/',
  'http://127.0.0.1/#x',
  'http://[::ffff:8.8.8.8]/',
  'file:///etc/passwd',
  '/introspect',
  '',
])('an introspection address elsewhere is refused: %s', async (introspection_url) => {
  const service = await startFrozen();
  const response = await service.control('applications', {
    name: 'X',
    redirect_uris: ['http://x.example/'],
    introspection_url,
  });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain('introspection_url');
});

test('a sandbox that listens beyond this machine calls nobody on it', async () => {
  const service = await startFrozen({ host: '0.0.0.0', expose: EXPOSE_WORDS });
  const application = { name: 'X', redirect_uris: ['http://x.example/'] };
  const introspection_url = 'http://127.0.0.1:4711/';
  expect((await service.control('applications', { ...application, introspection_url })).status).toBe(403);
  expect((await service.control('applications', application)).status).toBe(201);
});
