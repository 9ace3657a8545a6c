import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { optionsFromEnvironment } from '../../src/sandbox/environment.ts';
import { createSandbox } from '../../src/sandbox/sandbox.ts';
import { spawnEntry } from '../support/spawn-entry.ts';

const ENTRY = 'src/sandbox/main.ts';

test('the environment gives the options', () => {
  expect(optionsFromEnvironment({})).toEqual({
    port: 4010,
    windowMs: 60_000,
    latencyMs: 0,
    redirectUris: [],
  });
  expect(
    optionsFromEnvironment({
      SANDBOX_PORT: '0',
      SANDBOX_WINDOW_MS: '6000',
      SANDBOX_LATENCY_MS: '40',
      PUBLIC_URL: 'https://app.example/',
      PORT: '',
    }),
  ).toEqual({
    port: 0,
    windowMs: 6_000,
    latencyMs: 40,
    redirectUris: ['https://app.example/oauth/callback'],
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
    PUBLIC_URL: 'localhost',
    NODE_ENV: 'production',
  });
  expect(problems).toEqual([
    expect.stringContaining('NODE_ENV is production'),
    expect.stringContaining('SANDBOX_PORT must be'),
    expect.stringContaining('SANDBOX_WINDOW_MS must be'),
    expect.stringContaining('SANDBOX_LATENCY_MS must be'),
    expect.stringContaining('PUBLIC_URL must be'),
  ]);
});

test.each(['SIGTERM', 'SIGINT'] as const)('%s ends it at once, with a connection open', async (signal) => {
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
});

test('a port in use is one clear line', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const address = holder.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const entry = spawnEntry(ENTRY, { SANDBOX_PORT: String(port) });
  expect((await entry.exited).code).toBe(1);
  expect(entry.output()).toBe(
    `sandbox: port ${port} is in use: end what runs there, or set SANDBOX_PORT to another one.\n`,
  );
  holder.close();
});

test('it refuses production', async () => {
  const entry = spawnEntry(ENTRY, { SANDBOX_PORT: '0', NODE_ENV: 'production' });
  expect((await entry.exited).code).toBe(1);
  expect(entry.output()).toMatch(/^sandbox: NODE_ENV is production/);
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
