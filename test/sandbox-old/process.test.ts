import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { optionsFromEnvironment } from '../../src/sandbox/environment.ts';
import { createSandbox } from '../../src/sandbox/sandbox.ts';
import { at, startSandbox } from '../sandbox/support/test-sandbox.ts';
import { spawnEntry } from '../support/spawn-entry.ts';

const ENTRY = 'src/sandbox/main.ts';
const EXPOSE = 'yes-i-know-it-has-no-password';

afterEach(() => {
  vi.unstubAllEnvs();
});

/** The status of a request to the API with this `Host`. */
async function statusFor(origin: string, host: string): Promise<string> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  socket.write(`GET /api/me HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  const [answer] = await once(socket, 'data');
  socket.destroy();
  return String(answer).slice(9, 12);
}

test('the environment gives the options', () => {
  expect(optionsFromEnvironment({})).toEqual({
    host: '127.0.0.1',
    port: 4010,
    windowMs: 60_000,
    latencyMs: 0,
    guards: {},
    redirectUris: [],
    readings: {},
  });
  expect(
    optionsFromEnvironment({
      SANDBOX_PORT: ' 0\r\n',
      SANDBOX_WINDOW_MS: '6000',
      SANDBOX_LATENCY_MS: '40',
      SANDBOX_GUARD_ANALYTICS: '2/4.5',
      SANDBOX_GUARD_RESOURCE: '25/1',
      SANDBOX_HOST: '0.0.0.0',
      SANDBOX_EXPOSE: EXPOSE,
      SANDBOX_PUBLIC_URL: 'https://sandbox.example',
      SANDBOX_SEED: 'world.json',
      SANDBOX_EXPIRES_AT: 'iso',
      SANDBOX_CHANGES: '204',
      PUBLIC_URL: 'https://app.example/',
      PORT: '',
    }),
  ).toEqual({
    host: '0.0.0.0',
    expose: EXPOSE,
    port: 0,
    windowMs: 6_000,
    latencyMs: 40,
    guards: {
      analytics: { tier: '1', limit: 2, windowMs: 4_500 },
      resource: { tier: '2', limit: 25, windowMs: 1_000 },
    },
    redirectUris: ['https://app.example/oauth/callback'],
    readings: { expiresAt: 'iso', changes: 204 },
    publicUrl: 'https://sandbox.example',
    seed: 'world.json',
  });
  expect(optionsFromEnvironment({ PORT: '8080' })).toMatchObject({
    redirectUris: ['http://localhost:8080/oauth/callback', 'http://127.0.0.1:8080/oauth/callback'],
  });
});

test('every wrong variable is named', () => {
  const problems = optionsFromEnvironment({
    SANDBOX_PORT: '70000',
    SANDBOX_WINDOW_MS: '0',
    SANDBOX_LATENCY_MS: '-5',
    SANDBOX_GUARD_ANALYTICS: '1 / 3',
    SANDBOX_GUARD_RESOURCE: '0/1',
    SANDBOX_PUBLIC_URL: 'https://sandbox.example/path',
    SANDBOX_EXPIRES_AT: 'date',
    SANDBOX_CHANGES: '202',
    SANDBOX_EXPOSE: 'true',
    PUBLIC_URL: 'localhost',
    NODE_ENV: 'production',
  });
  expect(problems).toEqual([
    expect.stringContaining('NODE_ENV is production'),
    expect.stringContaining('SANDBOX_PORT must be'),
    expect.stringContaining('SANDBOX_WINDOW_MS must be'),
    expect.stringContaining('SANDBOX_LATENCY_MS must be'),
    'SANDBOX_GUARD_ANALYTICS must be requests/seconds, like 5/1 or 1/3, both above 0',
    'SANDBOX_GUARD_RESOURCE must be requests/seconds, like 5/1 or 1/3, both above 0',
    expect.stringContaining('SANDBOX_PUBLIC_URL must be an origin'),
    'SANDBOX_EXPIRES_AT must be string, number or iso',
    'SANDBOX_CHANGES must be 200 or 204',
    `SANDBOX_EXPOSE must be ${EXPOSE}, word for word`,
    expect.stringContaining('PUBLIC_URL must be'),
  ]);
});

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  '%s ends it at once, with a connection open',
  async (signal) => {
    const entry = spawnEntry(ENTRY, { SANDBOX_PORT: '0' });
    const [, address = ''] = await entry.waitForOutput(/API +(http:\S+)/);
    const { hostname, port } = new URL(address);
    expect(hostname).toBe('127.0.0.1');
    const socket = connect(Number(port), hostname);
    socket.write('GET /_sandbox/state HTTP/1.1\r\nhost: localhost\r\n\r\n');
    await once(socket, 'data');
    socket.on('error', () => socket.destroy());
    const startedAt = performance.now();
    expect(await entry.stop(signal)).toEqual({ code: 0, signal: null });
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    socket.destroy();
  },
);

test('a port in use is one clear line', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const address = holder.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const entry = spawnEntry(ENTRY, { SANDBOX_PORT: String(port) });
  expect((await entry.exited).code).toBe(1);
  expect(entry.output()).toBe(
    `sandbox: Port ${port} is in use: end what listens there, or set SANDBOX_PORT to another one.\n`,
  );
  holder.close();
});

test('it refuses production', async () => {
  const entry = spawnEntry(ENTRY, { SANDBOX_PORT: '0', NODE_ENV: 'production' });
  expect((await entry.exited).code).toBe(1);
  expect(entry.output()).toMatch(/^sandbox: NODE_ENV is production/);
});

test('it refuses production also within another process', async () => {
  vi.stubEnv('NODE_ENV', 'production');
  await expect(createSandbox()).rejects.toThrow('NODE_ENV is production');
});

test('it refuses an address beyond this machine that was not asked for in words', async () => {
  const entry = spawnEntry(ENTRY, { SANDBOX_PORT: '0', SANDBOX_HOST: '0.0.0.0' });
  expect((await entry.exited).code).toBe(1);
  expect(entry.output()).toMatch(/^sandbox: The sandbox listens on this machine alone.*SANDBOX_EXPOSE/);
});

test('an address that is none of this machine’s is one clear line', async () => {
  const entry = spawnEntry(ENTRY, {
    SANDBOX_PORT: '0',
    SANDBOX_HOST: '192.0.2.1',
    SANDBOX_EXPOSE: EXPOSE,
  });
  expect((await entry.exited).code).toBe(1);
  expect(entry.output()).toMatch(/^sandbox: 192\.0\.2\.1 is no address of this machine: .+\n$/);
});

test('asked for in words, it listens beyond this machine, and says so loudly', async () => {
  const entry = spawnEntry(ENTRY, { SANDBOX_PORT: '0', SANDBOX_HOST: '0.0.0.0', SANDBOX_EXPOSE: EXPOSE });
  await entry.waitForOutput(/IT LISTENS BEYOND THIS MACHINE/);
  const [, origin = ''] = await entry.waitForOutput(/Front page +(http:\S+)/);
  expect(await statusFor(origin, '192.0.2.7:4010')).toBe('401');
  await entry.stop();
});

test('only names of this machine are answered to; exposed, also addresses and names of a private network', async () => {
  const [own, exposed] = [await startSandbox(), await startSandbox({ host: '0.0.0.0', expose: EXPOSE })];
  const names = [
    'localhost:4010',
    '127.0.0.1',
    '[::1]:80',
    '10.1.2.3:4010',
    '[fe80::1]',
    'sandbox',
    'x.local',
  ];
  const foreign = ['evil.example', 'evil.example:4010', 'local.evil.example', 'localhost.evil.example', ''];
  const statuses = async (origin: string, hosts: string[]) =>
    (await Promise.all(hosts.map((host) => statusFor(origin, host)))).join(' ');
  expect(await statuses(own.sandbox.origin, names)).toBe('401 401 401 403 403 403 403');
  expect(await statuses(exposed.sandbox.origin, names)).toBe('401 401 401 401 401 401 401');
  expect(await statuses(own.sandbox.origin, foreign)).toBe('403 403 403 403 403');
  expect(await statuses(exposed.sandbox.origin, foreign)).toBe('403 403 403 403 403');
});

test('the limits of the two open guards are what was configured', async () => {
  const options = optionsFromEnvironment({ SANDBOX_PORT: '0', SANDBOX_GUARD_RESOURCE: '2/7' });
  if (Array.isArray(options)) throw new Error(options.join());
  const service = await startSandbox(options);
  await service.freeze();
  const company = await service.company();
  const token = at(company.api_tokens, 0).token;
  const seen = () => service.call('PATCH', `/teammates/${at(company.teammates, 0).id}`, token, {});
  expect([(await seen()).status, (await seen()).status]).not.toContain(429);
  const refused = await seen();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '7']);
  await service.advance(7_000);
  expect((await seen()).status).not.toBe(429);
});

test('a target with the origin in front, as clients of a proxy send it, is the same route', async () => {
  const sandbox = await createSandbox();
  const { hostname, port, host } = new URL(sandbox.origin);
  const socket = connect(Number(port), hostname);
  socket.write(`GET ${sandbox.apiUrl}/me HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  const [answer] = await once(socket, 'data');
  expect(String(answer)).toMatch(/^HTTP\/1.1 401 /);
  socket.destroy();
  await sandbox.close();
});
