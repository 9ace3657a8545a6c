import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { EXPOSE_WORDS } from '../../src/contract/sandbox.ts';
import { optionsFromEnvironment } from '../../src/sandbox/environment.ts';
import { createSandbox } from '../../src/sandbox/sandbox.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { APP_INFO } from '../support/usual-resources.ts';
import { startSandbox } from './support/test-sandbox.ts';

const start = (args: string[], environment = {}, cwd = tempDir()) =>
  spawnEntry('src/sandbox/main.ts', { SANDBOX_PORT: '0', ...environment }, { args, cwd });

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

describe('The command of the sandbox', () => {
  test('It prints a line of JSON; flags win over variables, and no .env is read', async () => {
    const cwd = tempDir();
    const seed = { companies: [{ name: 'Acme', plan: 'starter', contacts: 1 }] };
    writeFileSync(join(cwd, 'world.json'), JSON.stringify(seed));
    writeFileSync(join(cwd, '.env'), 'SANDBOX_LATENCY_MS=none\n');
    const flags = ['--window-ms=2000', '--json', '--seed', 'world.json'];
    const command = start(flags, { SANDBOX_WINDOW_MS: '60000' }, cwd);
    await command.waitForOutput(/\n/);
    const [line = '', ...more] = command.output().split('\n');
    expect(more).toEqual(['']);
    const { pid, api_url, application, companies } = JSON.parse(line);
    expect([pid, application.client_id]).toEqual([command.pid, 'sandboxpartnerapp']);
    const [{ name, administrator, api_tokens }] = companies;
    expect([name, companies.length]).toEqual(['Acme', 1]);
    const authorization = `Bearer ${api_tokens[0].token}`;
    const read = await fetch(`${api_url}/teammates/${administrator}`, { headers: { authorization } });
    expect(await read.json()).toMatchObject({ is_admin: true });
    expect(Number(read.headers.get('x-ratelimit-reset')) - Date.now() / 1000).toBeLessThan(3);
    await command.stop();
  });

  test('npm run sandbox calls the default application by the name of the app', async () => {
    const command = spawnEntry('src/sandbox-start.ts', { SANDBOX_PORT: '0' }, { args: ['--json'] });
    await command.waitForOutput(/\n/);
    const { origin } = JSON.parse(command.output());
    const { applications } = JSON.parse(await (await fetch(`${origin}/_sandbox/state`)).text());
    expect(applications[0].name).toBe(APP_INFO.name);
    await command.stop();
  });

  test('It names every wrong flag and every wrong variable at once', async () => {
    const command = start(['serve', '--prot', '--json=x', '--changes', '202', '--seed']);
    expect((await command.exited).code).toBe(1);
    expect(command.output().split('\n')).toEqual([
      'sandbox: serve is not understood: see --help',
      'sandbox: --prot is not understood: see --help',
      'sandbox: --json is not understood: see --help',
      'sandbox: --seed needs a value',
      'sandbox: --changes must be 200 or 204',
      '',
    ]);
    const wrong = {
      ...{ NODE_ENV: 'production', SANDBOX_PORT: '70000', SANDBOX_WINDOW_MS: '0', SANDBOX_LATENCY_MS: '-5' },
      ...{ SANDBOX_GUARD_ANALYTICS: '1 / 3', SANDBOX_GUARD_RESOURCE: '0/1', SANDBOX_EXPIRES_AT: 'date' },
      ...{ SANDBOX_PUBLIC_URL: 'https://sandbox.example/path', SANDBOX_CHANGES: '201' },
      ...{ SANDBOX_ORDER: 'newest' },
      ...{ SANDBOX_EXPOSE: 'true' },
    };
    const lines = Object.keys(wrong).map((name) => expect.stringMatching(`^${name} (must be|is production)`));
    expect(optionsFromEnvironment(wrong)).toEqual(expect.arrayContaining(lines));
  });

  test('A signal ends it, with a connection open', async () => {
    const command = start([]);
    const [, port] = await command.waitForOutput(/API +http:\/\/127\.0\.0\.1:(\d+)\/api\n/);
    const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
    socket.write('GET /_sandbox/state HTTP/1.1\r\nhost: localhost\r\n\r\n');
    await once(socket, 'data');
    expect(await command.stop('SIGTERM')).toEqual({ code: 0, signal: null });
  });

  test('Started by npx, it ends with its parent', async () => {
    const env = { ...process.env, npm_command: 'exec', SANDBOX_PORT: '0' };
    const main = join(import.meta.dirname, '../../src/sandbox/main.ts');
    const preload = join(import.meta.dirname, '../../src/runtime/preload.js');
    const script = `require('child_process').spawn(process.execPath, ['--import', ${JSON.stringify(preload)}, ${JSON.stringify(main)}, '--json'],
      { stdio: ['ignore', 1, 2] }); setInterval(() => 0, 1000);`;
    const parent = spawn(process.execPath, ['-e', script], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(parent.stdout, 'data');
    const { pid, origin } = JSON.parse(String(line));
    expect((await fetch(origin)).status).toBe(200);
    parent.kill('SIGKILL');
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'), {
      timeout: 20_000,
      interval: 50,
    });
  });

  test('One clear line tells what keeps it from starting', async () => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const { port } = holder.address() as { port: number };
    const host = { SANDBOX_HOST: '192.0.2.1', SANDBOX_EXPOSE: EXPOSE_WORDS };
    for (const [args, environment, line] of [
      [['--port', String(port)], {}, `Port ${port} is in use: .+ set SANDBOX_PORT to another one\\.`],
      [[], { NODE_ENV: 'production' }, 'NODE_ENV is production.*'],
      [[], host, '192\\.0\\.2\\.1 is no address of this machine: .+'],
      [['--host', '0.0.0.0'], {}, '.* on this machine only\\. .*'],
      [['--seed', 'none.json'], {}, 'seed: none\\.json cannot be read: ENOENT.*'],
      [['--public-url', 'https://a.example/b'], {}, '--public-url must be an origin.*'],
    ] as const) {
      const command = start([...args], environment);
      expect((await command.exited).code).toBe(1);
      expect(command.output()).toMatch(new RegExp(`^sandbox: ${line}\n$`));
    }
    holder.close();
  });

  test('--help lists the flags; asked in words, it listens beyond this machine, loudly', async () => {
    const help = start(['--help']);
    expect((await help.exited).code).toBe(0);
    const flags = ['port', 'host', 'json', 'seed', 'public-url', 'expires-at', 'changes', 'latency-ms'];
    for (const flag of flags) expect(help.output()).toContain(`  --${flag} `);
    const exposed = start(['--host', '0.0.0.0'], { SANDBOX_EXPOSE: EXPOSE_WORDS });
    await exposed.waitForOutput(/IT LISTENS BEYOND THIS MACHINE/);
    const [, origin = ''] = await exposed.waitForOutput(/Front page +(http:\S+)/);
    expect(await statusOf(origin, '192.0.2.7:4010')).toBe('401');
    await exposed.stop();
  });
});

describe('The process of the sandbox', () => {
  test('Within a test, too, it refuses production and addresses beyond this machine', async () => {
    await expect(startSandbox({ host: '0.0.0.0' })).rejects.toThrow(/this machine/);
    const wrong = { windowMs: 0.5, publicUrl: 'x', readings: { changes: 201 as 204 } };
    const words = ['windowMs must', 'publicUrl must', 'readings.changes must'];
    for (const word of words) await expect(startSandbox(wrong)).rejects.toThrow(word);
    vi.stubEnv('NODE_ENV', 'production');
    await expect(createSandbox()).rejects.toThrow('NODE_ENV is production');
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
