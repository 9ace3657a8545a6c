import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { EXPOSE_WORDS } from '../../src/contract/sandbox.ts';
import { optionsFromEnvironment } from '../../src/sandbox/environment.ts';
import { createSandbox } from '../../src/sandbox/sandbox.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { at, startSandbox } from './support/test-sandbox.ts';

const ENTRY = 'src/sandbox/main.ts';
const EXPOSED = { SANDBOX_PORT: '0', SANDBOX_HOST: '0.0.0.0', SANDBOX_EXPOSE: EXPOSE_WORDS };

afterEach(() => {
  vi.unstubAllEnvs();
});

/** The status of a request with this target and `Host`. */
async function statusOf(origin: string, host: string, target = '/api/me'): Promise<string> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  const [answer] = await once(socket, 'data');
  socket.destroy();
  return String(answer).slice(9, 12);
}

describe('Environment variables of the sandbox', () => {
  test('They give the options; an empty one counts as unset', () => {
    const plain = { host: '127.0.0.1', port: 4010, windowMs: 60_000, latencyMs: 0, redirectUris: [] };
    expect(optionsFromEnvironment({ PORT: '' })).toMatchObject(plain);
    const given = optionsFromEnvironment({
      SANDBOX_PORT: ' 0\r\n',
      SANDBOX_LATENCY_MS: '40',
      SANDBOX_GUARD_ANALYTICS: '2/4.5',
      SANDBOX_GUARD_RESOURCE: '25/1',
      PUBLIC_URL: 'https://app.example/',
    });
    const analytics = { tier: '1', limit: 2, windowMs: 4_500 };
    const guards = { analytics, resource: { tier: '2', limit: 25, windowMs: 1_000 } };
    const redirectUris = ['https://app.example/oauth/callback'];
    expect(given).toMatchObject({ port: 0, latencyMs: 40, guards, redirectUris });
  });

  test('Every wrong one is named', () => {
    const wrong = {
      NODE_ENV: 'production',
      SANDBOX_PORT: '70000',
      SANDBOX_WINDOW_MS: '0',
      SANDBOX_LATENCY_MS: '-5',
      SANDBOX_GUARD_ANALYTICS: '1 / 3',
      SANDBOX_GUARD_RESOURCE: '0/1',
      SANDBOX_PUBLIC_URL: 'https://sandbox.example/path',
      SANDBOX_EXPIRES_AT: 'date',
      SANDBOX_CHANGES: '201',
      SANDBOX_EXPOSE: 'true',
      PUBLIC_URL: 'localhost',
    };
    const lines = Object.keys(wrong).map((name) => expect.stringMatching(`^${name} (must be|is production)`));
    expect(optionsFromEnvironment(wrong)).toEqual(lines);
  });
});

describe('The process of the sandbox', () => {
  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    '%s ends it, with a connection open',
    async (signal) => {
      const entry = spawnEntry(ENTRY, { SANDBOX_PORT: '0' });
      const [, port] = await entry.waitForOutput(/API +http:\/\/127\.0\.0\.1:(\d+)\/api\n/);
      const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
      socket.write('GET /_sandbox/state HTTP/1.1\r\nhost: localhost\r\n\r\n');
      await once(socket, 'data');
      expect(await entry.stop(signal)).toEqual({ code: 0, signal: null });
    },
  );

  test('An answer that is held back does not keep a sandbox from stopping', async () => {
    const service = await startSandbox({ latencyMs: 60_000 });
    const { token } = at(at((await service.state()).companies, 0).api_tokens, 0);
    const pending = service.api('/me', token).catch((error: Error) => error.message);
    while ((await service.state()).limits.length === 0);
    await service.sandbox.close();
    expect(await pending).toBe('fetch failed');
  });

  test('What keeps it from starting is one clear line', async () => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const { port } = holder.address() as { port: number };
    for (const [environment, line] of [
      [{ SANDBOX_PORT: String(port) }, `Port ${port} is in use: .+ set SANDBOX_PORT to another one\\.`],
      [{ SANDBOX_PORT: '0', NODE_ENV: 'production' }, 'NODE_ENV is production.*'],
      [{ ...EXPOSED, SANDBOX_HOST: '192.0.2.1' }, '192\\.0\\.2\\.1 is no address of this machine: .+'],
    ] as const) {
      const entry = spawnEntry(ENTRY, environment);
      expect((await entry.exited).code).toBe(1);
      expect(entry.output()).toMatch(new RegExp(`^sandbox: ${line}\n$`));
    }
    holder.close();
  });

  test('Within a test, too, it refuses production and addresses beyond this machine', async () => {
    await expect(startSandbox({ host: '0.0.0.0' })).rejects.toThrow(/this machine/);
    vi.stubEnv('NODE_ENV', 'production');
    await expect(createSandbox()).rejects.toThrow('NODE_ENV is production');
  });

  test('Asked in words, it listens beyond this machine, and says so loudly', async () => {
    const entry = spawnEntry(ENTRY, EXPOSED);
    await entry.waitForOutput(/IT LISTENS BEYOND THIS MACHINE/);
    const [, origin = ''] = await entry.waitForOutput(/Front page +(http:\S+)/);
    expect(await statusOf(origin, '192.0.2.7:4010')).toBe('401');
    await entry.stop();
  });

  test('It answers to names of this machine; exposed, also to those of a private network', async () => {
    const own = (await startSandbox()).sandbox;
    const exposed = (await startSandbox({ host: '0.0.0.0', expose: EXPOSE_WORDS })).sandbox;
    const near = ['localhost:4010', '127.0.0.1', '[::1]:80'];
    const network = ['10.1.2.3:4010', '[fe80::1]', 'sandbox', 'x.local'];
    const foreign = ['evil.example', 'evil.example:4010', 'local.evil.example', 'localhost.evil.example', ''];
    for (const host of [...near, ...network, ...foreign]) {
      const statuses = [await statusOf(own.origin, host), await statusOf(exposed.origin, host)];
      const expected = [near.includes(host) ? '401' : '403', foreign.includes(host) ? '403' : '401'];
      expect([host, ...statuses]).toEqual([host, ...expected]);
    }
    for (const path of ['/', '/auth/oauth/authorize', '/_sandbox/state'])
      expect(await statusOf(own.origin, 'evil.example', path)).toBe('403');
    expect(await statusOf(own.origin, 'localhost', `${own.apiUrl}/me`), 'as to a proxy').toBe('401');
  });
});
