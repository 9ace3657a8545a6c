import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { ConfigError, type ProcessKind, VARIABLES, type VariableName } from '../../src/config/variables.ts';
import { spawnEntry, spawnProcess } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';

const base64 = (bytes: number) => randomBytes(bytes).toString('base64');
const [KEY_A, KEY_B] = [base64(32), base64(32)];
const HALF = randomBytes(16);
const PRODUCTION = {
  NODE_ENV: 'production',
  SERVICE_API_URL: 'https://api.example.com',
  SERVICE_AUTH_URL: 'https://auth.example.com',
  CLIENT_ID: 'client',
  CLIENT_SECRET: 'kF: %&=z8',
  PUBLIC_URL: 'https://app.example.com',
  DATABASE_URL: 'file:/var/lib/partner-app/app.db',
  REDIS_URL: 'redis://redis:6379',
  SESSION_SECRET: base64(48),
  TOKEN_KEYS: `a:${KEY_A}`,
};
/** What Kubernetes sets for a Service of the name. */
const SERVICE_LINK = 'tcp://10.96.0.12:3001';

type Env = Record<string, string>;
const load = (env: Env, kind?: ProcessKind) => loadConfig(env, { dataDir: tempDir(), ...(kind && { kind }) });

function problemsOf(env: Env, kind?: ProcessKind): Record<string, string> {
  try {
    load(env, kind);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return Object.fromEntries(error.problems.map(({ variable, problem }) => [variable, problem]));
  }
  return {};
}

describe('values', () => {
  it('uses the sandbox and this machine in development if nothing is set', () => {
    expect(load({ PORT: '', REDIS_URL: '' })).toMatchObject({
      production: false,
      service: { apiUrl: 'http://127.0.0.1:4010/api', clientId: 'sandboxpartnerapp', isSandbox: true },
      publicUrl: 'http://localhost:3000',
      host: '127.0.0.1',
      databaseUrl: expect.stringMatching(/^file:\/.*\/app\.db$/),
      redisUrl: undefined,
      operatorPassword: undefined,
      syncIntervalMs: 3_600_000,
      checkIntervalMs: 60_000,
      logLevel: 'info',
      ignored: [],
    });
    expect(load(PRODUCTION).host).toBe('0.0.0.0');
  });

  it('reads every value that is set', () => {
    const config = load({
      ...PRODUCTION,
      SERVICE_API_URL: 'https://API.example.com:443/v1/',
      SERVICE_NEXT_ORIGINS: 'https://*.api.example.com, https://other.example.com/',
      DATABASE_URL: 'file:///var/lib/app.db',
      TOKEN_KEYS: `b:${KEY_B}, a:${KEY_A}`,
      SYNC_INTERVAL_MINUTES: '0.5',
      CHECK_INTERVAL_SECONDS: '0',
      GUARD_ANALYTICS: '2/10',
    });
    expect(config).toMatchObject({
      service: {
        apiUrl: 'https://api.example.com/v1',
        nextOrigins: ['https://*.api.example.com', 'https://other.example.com'],
        clientSecret: 'kF: %&=z8',
        guards: { analytics: { tier: '1', limit: 2, windowMs: 10_000 } },
        isSandbox: false,
      },
      proxyHops: 1,
      databaseUrl: 'file:/var/lib/app.db',
      syncIntervalMs: 30_000,
      checkIntervalMs: 0,
    });
    expect(config.tokenKeys.map(({ id, key }) => [id, key.toString('base64')])).toEqual([
      ['b', KEY_B],
      ['a', KEY_A],
    ]);
    expect(load({ DATABASE_URL: 'postgresql://db/app?user=me' }).databaseUrl).toContain('?user=me');
  });

  it('finds its own sandbox, and knows its guards', () => {
    const service = (env: Env) => load(env).service;
    expect(service({ SANDBOX_PORT: '5000', SANDBOX_HOST: '0.0.0.0' }).apiUrl).toBe(
      'http://127.0.0.1:5000/api',
    );
    expect(service({ SANDBOX_HOST: '::1' }).apiUrl).toBe('http://[::1]:4010/api');
    const proxied = load({ SANDBOX_PUBLIC_URL: 'https://sandbox.example/' });
    expect(proxied.service.authUrl).toBe('https://sandbox.example/auth');
    expect(proxied.sandbox.publicUrl).toBe('https://sandbox.example');
    const guards = { resource: { tier: '2', limit: 3, windowMs: 2_000 } };
    expect(service({ SANDBOX_GUARD_RESOURCE: '3/2' }).guards).toEqual(guards);
    expect(service({ SANDBOX_GUARD_RESOURCE: '3/2', GUARD_RESOURCE: '4/2' }).guards).not.toEqual(guards);
  });

  it.each([
    ['PORT', '70000', 'whole number from 0 to 65535 (it is "70000")'],
    ['SANDBOX_PORT', SERVICE_LINK, 'Kubernetes sets it for a Service of this name: rename the Service'],
    ['PROXY_HOPS', '11', 'whole number from 0 to 10'],
    ['SYNC_INTERVAL_MINUTES', '.', 'a number from 0.01'],
    ['CHECK_INTERVAL_SECONDS', '86401', 'a number from 0 to 86400'],
    ['LOG_LEVEL', 'loud', 'one of trace'],
    ['NODE_ENV', 'prod', 'development, test or production'],
    ['HOST', 'http://x', 'host name'],
    ['PUBLIC_URL', 'app.example.com', 'http or https URL'],
    ['PUBLIC_URL', 'https://app.example.com/app', 'must not contain a path'],
    ['SERVICE_API_URL', 'https://me:hush@example.com', 'must not contain a user name'],
    ['SERVICE_API_URL', 'https://example.com/?', 'or a fragment'],
    ['SERVICE_NEXT_ORIGINS', 'https://a.example.com,https://*.com', 'entry 2 may have a "*" only as'],
    ['CLIENT_ID', 'a:b', 'without spaces and colons'],
    ['DATABASE_URL', 'app.db', 'must be file:'],
    ['DATABASE_URL', 'file://host/app.db', 'must be file:'],
    ['DATABASE_URL', 'postgres://hush@db', 'postgres://user:password@host/name'],
    ['DATABASE_URL', 'postgresql://me:hush%b@db/app', 'write it as "%25"'],
    ['REDIS_URL', 'localhost:6379', 'redis://'],
    ['REDIS_URL', 'redis://redis/1?keyPrefix=hush:', 'nothing but the number'],
    ['SESSION_SECRET', 'hush', 'at least 32'],
    ['TOKEN_KEYS', `a:${KEY_A},b:c2hvcnQ=`, 'entry 2 must be an id, a colon, and a key of 32 bytes'],
    ['TOKEN_KEYS', `a:${KEY_A},a:${KEY_B}`, 'an id twice'],
    ['TOKEN_KEYS', `a:${KEY_A},b:${KEY_A}`, 'a key twice'],
    ['GUARD_ANALYTICS', '1 in 3', 'requests/seconds'],
    ['SANDBOX_EXPOSE', 'yes', 'word for word'],
  ])('refuses %s=%s', (variable, value, problem) => {
    const found = problemsOf({ [variable]: value })[variable];
    expect(found).toContain(problem);
    expect(found).not.toContain('hush');
  });

  it.each(Object.keys(VARIABLES))('refuses quotes around %s, and never shows the value', (name) => {
    const env = { NODE_ENV: 'test', [name]: `'a value of 32 characters or more!'` };
    expect(problemsOf(env, VARIABLES[name as VariableName].usedBy[0])[name]).toMatch(/remove the quotes$/);
  });

  it('names all problems at once, each with an example', () => {
    const act = () => load({ SERVICE_API_URL: 'https://api.example.com', PORT: 'x', PROXY_HOPS: 'y' });
    expect(act).toThrow('The configuration has 5 problems (.env.example explains every variable):\n');
    for (const variable of ['PORT', 'PROXY_HOPS', 'SERVICE_AUTH_URL', 'CLIENT_ID', 'CLIENT_SECRET']) {
      expect(act).toThrow(new RegExp(`^ {2}${variable} .*\\n {6}example: ${variable}=.+`, 'm'));
    }
  });

  it.each([
    [{ CLIENT_ID: 'me' }, 'CLIENT_SECRET'],
    [{ PORT: '0' }, 'PUBLIC_URL'],
    [{ SANDBOX_PORT: '0' }, 'SANDBOX_PORT'],
    [{ PUBLIC_URL: 'https://app.example.com', PROXY_HOPS: '0' }, 'PROXY_HOPS'],
    [{ NODE_USE_ENV_PROXY: '1', HTTPS_PROXY: 'proxy:3128' }, 'HTTPS_PROXY'],
    [{ NODE_OPTIONS: '--use-env-proxy', http_proxy: 'proxy.example.com' }, 'http_proxy'],
  ])('refuses variables that contradict each other: %j', (env, variable) => {
    expect(Object.keys(problemsOf(env))).toEqual([variable]);
  });

  it('uses a proxy with a scheme for the service alone, if Node does', () => {
    const switchedOn = { NODE_USE_ENV_PROXY: '1', HTTPS_PROXY: 'http://me:hush@proxy:3128' };
    expect(load({ ...PRODUCTION, ...switchedOn }).outbound.usesProxy).toBe(true);
    // The app's own sandbox is on this machine.
    expect(load(switchedOn).outbound.usesProxy).toBe(false);
    expect(problemsOf({ NODE_USE_ENV_PROXY: '1', HTTPS_PROXY: 'proxy:3128' }, 'database')).toEqual({});
    expect(load({ ...PRODUCTION, HTTPS_PROXY: 'proxy:3128' })).toMatchObject({
      outbound: { usesProxy: false },
      ignored: ['HTTPS_PROXY'],
    });
  });
});

describe('a process', () => {
  it.each<[ProcessKind, Env, string[]]>([
    ['web', { WORKER_PORT: SERVICE_LINK, SANDBOX_PORT: SERVICE_LINK }, ['SANDBOX_PORT', 'WORKER_PORT']],
    ['start', { SANDBOX_HOST: '?' }, ['SANDBOX_HOST']],
    ['worker', { OPERATOR_PASSWORD: 'x', PORT: SERVICE_LINK }, ['OPERATOR_PASSWORD', 'PORT']],
    ['database', { HANDLER_TIMEOUT_SECONDS: '?' }, ['HANDLER_TIMEOUT_SECONDS']],
  ])('starts as %s with unused variables %j, and names them', (kind, env, ignored) => {
    expect(load({ ...PRODUCTION, ...env }, kind).ignored).toEqual(expect.arrayContaining(ignored));
  });

  it('needs in production only what it uses', () => {
    const needs = (kind: ProcessKind) => Object.keys(problemsOf({ NODE_ENV: 'production' }, kind));
    expect(needs('start').toSorted()).toEqual(
      Object.keys(PRODUCTION)
        .filter((name) => name !== 'NODE_ENV')
        .toSorted(),
    );
    expect(needs('worker')).not.toContain('SESSION_SECRET');
    expect(needs('reencrypt')).toEqual(['DATABASE_URL', 'TOKEN_KEYS']);
    expect(needs('database')).toEqual(['DATABASE_URL']);
  });

  it('checks certificates in production if it talks to the service', () => {
    const unchecked = { ...PRODUCTION, NODE_TLS_REJECT_UNAUTHORIZED: '0' };
    expect(problemsOf(unchecked, 'worker').NODE_TLS_REJECT_UNAUTHORIZED).toContain('NODE_EXTRA_CA_CERTS');
    for (const kind of ['reencrypt', 'database'] as const) expect(problemsOf(unchecked, kind)).toEqual({});
    expect(load({ NODE_TLS_REJECT_UNAUTHORIZED: '0' }).outbound.checksCertificates).toBe(false);
  });

  it('says that .env must be a file, without a stack', async () => {
    const cwd = tempDir();
    mkdirSync(join(cwd, '.env'));
    const migrate = spawnEntry('src/cli.ts', {}, { cwd, args: ['migrate'] });
    expect(await migrate.exited).toMatchObject({ code: 1 });
    expect(migrate.output()).toMatch(/^ {2}\.env is not a file .* PORT=3000, or remove it\n$/m);
    expect(migrate.output()).not.toContain('    at ');
  });

  it.each([
    ['UTF-8 with a byte order mark', Buffer.from('\ufeffDATABASE_URL=file:other.db')],
    ['UTF-16', Buffer.from('\ufeffDATABASE_URL=file:other.db', 'utf16le')],
    ['Latin-1', Buffer.from('DATABASE_URL=file:other.db\nNAME=Zoë', 'latin1')],
  ])('reads, or refuses, the first variable of a .env in %s', async (encoding, bytes) => {
    const cwd = tempDir();
    writeFileSync(join(cwd, '.env'), bytes);
    const migrate = spawnEntry('src/cli.ts', {}, { cwd, args: ['migrate'] });
    const { code } = await migrate.exited;
    expect(existsSync(join(cwd, '.data'))).toBe(false);
    const isHeard = encoding.startsWith('UTF-8');
    expect(existsSync(join(cwd, 'other.db'))).toBe(isHeard);
    expect(code).toBe(isHeard ? 0 : 1);
    if (code === 1)
      expect(migrate.output()).toContain(
        '.env is in UTF-16, or in another encoding than UTF-8: save it in UTF-8',
      );
  });

  it.each([
    ['utf8', 'SANDBOX_WINDOW_MS must be a whole number'],
    ['utf16le', '.env is in UTF-16'],
  ] as const)(
    'npm run sandbox hears, or refuses, a .env with a byte order mark in %s',
    async (encoding, says) => {
      const cwd = tempDir();
      writeFileSync(join(cwd, '.env'), Buffer.from('\ufeffSANDBOX_WINDOW_MS=none', encoding));
      const root = join(import.meta.dirname, '../..');
      const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
      const args = scripts.sandbox.replace('exec node ', '').replaceAll('./', `${root}/`).split(' ');
      args[args.length - 1] = join(root, args.at(-1));
      const sandbox = spawnProcess(process.execPath, args, { cwd, env: { PATH: process.env.PATH ?? '' } });
      expect((await sandbox.exited).code).toBe(1);
      expect(sandbox.output()).toContain(says);
    },
  );

  it('names what .env sets and nothing reads', async () => {
    const cwd = tempDir();
    writeFileSync(join(cwd, '.env'), 'DATABSE_URL=file:app.db\nTZ=UTC\nPORT=0\n');
    const web = spawnEntry(
      'src/web.ts',
      { REDIS_URL: 'redis://127.0.0.1:9', PUBLIC_URL: 'http://localhost' },
      { cwd },
    );
    const [line] = await web.waitForOutput(/in \.env, but neither .*/);
    expect(line).toMatch(/settings\.ts: DATABSE_URL"?/);
    expect(line).not.toMatch(/TZ|PORT/);
    await web.stop('SIGKILL');
  });

  it('trims every value, and the environment wins over .env', async () => {
    const cwd = tempDir();
    writeFileSync(join(cwd, '.env'), 'DATABASE_URL=file:other.db\r\nLOG_LEVEL=" silent\n"\r\n');
    const env = { DATABASE_URL: ` file:${cwd}/app.db\r\n`, NODE_ENV: 'test\n' };
    const migrate = spawnEntry('src/cli.ts', env, { cwd, args: ['migrate'] });
    expect(await migrate.exited, migrate.output()).toMatchObject({ code: 0 });
    expect(readFileSync(`${cwd}/app.db`, 'latin1')).toMatch(/^SQLite/);
  });
});

it('npm start uses SANDBOX_HOST', async () => {
  const start = spawnEntry('src/start.ts', { SANDBOX_HOST: '0.0.0.0' });
  await start.exited;
  expect(start.output()).toContain('To listen on 0.0.0.0, set SANDBOX_EXPOSE=');
});

describe('production', () => {
  it.each(['SERVICE_API_URL', 'SERVICE_AUTH_URL', 'SERVICE_NEXT_ORIGINS', 'PUBLIC_URL'])(
    'wants https in %s, except on this machine',
    (variable) => {
      for (const host of ['localhost:1', 'app.localhost', '127.0.0.1:4010', '[::1]:80']) {
        expect(problemsOf({ ...PRODUCTION, [variable]: `http://${host}` })).toEqual({});
      }
      for (const host of ['example.com', '127.0.0.1.example.com', 'localhost.example.com']) {
        expect(problemsOf({ ...PRODUCTION, [variable]: `http://${host}` })[variable]).toContain('https');
      }
    },
  );

  it.each([
    ['DATABASE_URL', 'file:data/app.db', 'an absolute path'],
    ['TOKEN_KEYS', `a:${KEY_A},b:${Buffer.alloc(32).toString('base64')}`, '"b" that is not random'],
    ...[Buffer.from('change-me-this-is-an-example-key'), Buffer.concat([HALF, HALF])].map((key) => [
      'TOKEN_KEYS',
      `a:${key.toString('base64')}`,
      '"a" that is not random: make one with npm run keys',
    ]),
    ...['notasecretsandboxonly100', 'your-client-secret', VARIABLES.CLIENT_SECRET.example].map((secret) => [
      'CLIENT_SECRET',
      secret,
      'is a placeholder: copy the secret',
    ]),
    ['SESSION_SECRET', 'abcd'.repeat(16), 'is not random'],
    ...['change_me', 'placeholder-', 'session-secret-goes-here-', 'an-example-'].map((text) => [
      'SESSION_SECRET',
      text.repeat(4),
      'is a placeholder: make one with openssl rand -base64 48',
    ]),
    ['OPERATOR_PASSWORD', 'Zk4pQ', 'at least 12 characters'],
    ...['P@ssw0rd1234', 'operator-2026', 'letmein-1234', VARIABLES.OPERATOR_PASSWORD.example].map((text) => [
      'OPERATOR_PASSWORD',
      text,
      'is a placeholder',
    ]),
    ...['operator2026!', 'Partner-App-1234'].map((text) => ['OPERATOR_PASSWORD', text, 'is a placeholder']),
    ...['companycompany', 'hunter2hunter2'].map((text) => [
      'OPERATOR_PASSWORD',
      text,
      'make one with openssl',
    ]),
  ])('refuses %s=%s, which development accepts', (variable, value, problem) => {
    expect(problemsOf({ ...PRODUCTION, [variable ?? '']: value ?? '' })[variable ?? '']).toContain(problem);
    expect(problemsOf({ CLIENT_ID: 'me', CLIENT_SECRET: 'x', [variable ?? '']: value ?? '' })).toEqual({});
  });

  it('accepts random secrets, and writes nothing', () => {
    const dataDir = `${tempDir()}/none`;
    for (let times = 0; times < 500; times++) {
      const [SESSION_SECRET, OPERATOR_PASSWORD] = [base64(48), randomBytes(12).toString('hex')];
      const env = { ...PRODUCTION, SESSION_SECRET, OPERATOR_PASSWORD, TOKEN_KEYS: `a:${base64(32)}` };
      expect(() => loadConfig(env, { dataDir }), JSON.stringify(env)).not.toThrow();
    }
    expect(existsSync(dataDir)).toBe(false);
  });
});
