import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { configuredSecrets } from '../src/config/configured-secrets.ts';
import { VARIABLES } from '../src/config/variables.ts';
import { ConfigError, loadConfig } from '../src/config.ts';
import { tempDir } from './support/temp-dir.ts';

const BYTES_A = createHash('sha256').update('a').digest();
const BYTES_B = createHash('sha256').update('b').digest();
const KEY_A = BYTES_A.toString('base64');
const KEY_B = BYTES_B.toString('base64');

const PRODUCTION = {
  NODE_ENV: 'production',
  SERVICE_API_URL: 'https://api.example.com',
  SERVICE_AUTH_URL: 'https://auth.example.com',
  CLIENT_ID: 'client',
  CLIENT_SECRET: 'client secret: %&=',
  PUBLIC_URL: 'https://app.example.com',
  DATABASE_URL: 'file:/var/lib/partner-app/app.db',
  REDIS_URL: 'redis://redis:6379',
  SESSION_SECRET: createHash('sha256').update('s').digest('hex'),
  TOKEN_KEYS: `a:${KEY_A}`,
};

const load = (env: Record<string, string>) => loadConfig(env, { dataDir: tempDir() });

function problemsOf(env: Record<string, string>): Record<string, string> {
  try {
    load(env);
  } catch (error) {
    if (error instanceof ConfigError) {
      return Object.fromEntries(error.problems.map(({ variable, problem }) => [variable, problem]));
    }
    throw error;
  }
  return {};
}

describe('defaults', () => {
  it('needs nothing in development, and takes the sandbox', () => {
    const dataDir = tempDir();
    const config = loadConfig({}, { dataDir });
    expect(config).toMatchObject({
      production: false,
      service: {
        apiUrl: 'http://127.0.0.1:4010/api',
        authUrl: 'http://127.0.0.1:4010/auth',
        nextOrigins: [],
        clientId: 'sandbox-partner-app',
        isSandbox: true,
      },
      publicUrl: 'http://localhost:3000',
      proxyHops: 0,
      host: '127.0.0.1',
      port: 3000,
      databaseUrl: `file:${dataDir}/app.db`,
      redisUrl: undefined,
      operatorPassword: undefined,
      syncIntervalMs: 3_600_000,
      logLevel: 'info',
      dataDir,
      sandbox: { port: 4010, windowMs: 60_000, latencyMs: 0, guards: {} },
    });
  });

  it('follows PORT and SANDBOX_PORT in the addresses', () => {
    const config = load({ PORT: '8080', SANDBOX_PORT: '5000' });
    expect(config.publicUrl).toBe('http://localhost:8080');
    expect(config.service.apiUrl).toBe('http://127.0.0.1:5000/api');
  });

  it('counts an empty value as unset', () => {
    expect(load({ PORT: '', SERVICE_API_URL: '', REDIS_URL: '' })).toMatchObject({
      port: 3000,
      redisUrl: undefined,
      service: { isSandbox: true },
    });
  });

  it('makes the data directory absolute', () => {
    const config = loadConfig({
      SESSION_SECRET: PRODUCTION.SESSION_SECRET,
      TOKEN_KEYS: PRODUCTION.TOKEN_KEYS,
    });
    expect(config.dataDir).toBe(resolve('.data'));
  });

  it('listens to the network in production only', () => {
    expect(load(PRODUCTION).host).toBe('0.0.0.0');
    expect(load({ ...PRODUCTION, HOST: '127.0.0.1' }).host).toBe('127.0.0.1');
  });
});

describe('values', () => {
  it('reads everything that is given', () => {
    const config = load({
      ...PRODUCTION,
      SERVICE_API_URL: 'https://API.example.com:443/v1/',
      SERVICE_NEXT_ORIGINS: 'https://*.api.example.com, https://other.example.com/',
      PUBLIC_URL: 'https://app.example.com/',
      DATABASE_URL: 'file:///var/lib/app.db',
      TOKEN_KEYS: `b:${KEY_B}, a:${KEY_A}`,
      OPERATOR_PASSWORD: 'a long word of the operator',
      SYNC_INTERVAL_MINUTES: '0.5',
      DELETED_RECORDS_DAYS: '7',
      HANDLER_TIMEOUT_SECONDS: '1.5',
      LOG_LEVEL: 'silent',
      SANDBOX_WINDOW_MS: '2000',
      SANDBOX_LATENCY_MS: '40',
      GUARD_ANALYTICS: '2/10',
      SANDBOX_GUARD_RESOURCE: '3/2.5',
    });
    expect(config).toMatchObject({
      production: true,
      service: {
        apiUrl: 'https://api.example.com/v1',
        authUrl: 'https://auth.example.com',
        nextOrigins: ['https://*.api.example.com', 'https://other.example.com'],
        clientId: 'client',
        clientSecret: 'client secret: %&=',
        guards: { analytics: { tier: '1', limit: 2, windowMs: 10_000 } },
        isSandbox: false,
      },
      publicUrl: 'https://app.example.com',
      databaseUrl: 'file:/var/lib/app.db',
      redisUrl: 'redis://redis:6379',
      sessionSecret: PRODUCTION.SESSION_SECRET,
      operatorPassword: 'a long word of the operator',
      syncIntervalMs: 30_000,
      keepDeletedMs: 7 * 86_400_000,
      handlerTimeoutMs: 1_500,
      logLevel: 'silent',
      sandbox: {
        port: 4010,
        windowMs: 2000,
        latencyMs: 40,
        guards: { resource: { tier: '2', limit: 3, windowMs: 2500 } },
      },
    });
    expect(config.tokenKeys).toEqual([
      { id: 'b', key: BYTES_B },
      { id: 'a', key: BYTES_A },
    ]);
  });

  it.each(Object.keys(VARIABLES))('refuses quotes around %s by name, and never shows the value', (name) => {
    for (const quote of ['"', "'"]) {
      const env = { ...PRODUCTION, [name]: `${quote}a value of 32 characters or more!${quote}` };
      expect(problemsOf(env)[name]).toMatch(/remove the quotes$/);
      expect(() => load(env)).not.toThrow(/a value of/);
    }
  });

  it.each([
    ['PORT', '70000', 'whole number from 0 to 65535 (it is "70000")'],
    ['PORT', '80.5', 'whole number'],
    ['SYNC_INTERVAL_MINUTES', '0', 'from 0.01'],
    ['SYNC_INTERVAL_MINUTES', '.', 'a number'],
    ['LOG_LEVEL', 'loud', 'one of trace'],
    ['NODE_ENV', 'prod', 'development, test or production'],
    ['HOST', 'http://x', 'host name'],
    ['PUBLIC_URL', 'app.example.com', 'http or https URL'],
    ['PUBLIC_URL', 'https://app.example.com/app', 'must not contain a path'],
    ['SERVICE_API_URL', 'ftp://example.com', 'http or https URL'],
    ['SERVICE_API_URL', 'https://me:pass@example.com', 'user name'],
    ['SERVICE_API_URL', 'https://example.com/?', 'query'],
    ['SERVICE_NEXT_ORIGINS', 'https://*.com', 'two labels'],
    ['SERVICE_NEXT_ORIGINS', 'https://a.*.example.com', 'whole first label'],
    ['SERVICE_NEXT_ORIGINS', 'https://x*.example.com', 'whole first label'],
    ['CLIENT_ID', 'a:b', 'without spaces and colons'],
    ['DATABASE_URL', 'app.db', 'must be file:'],
    ['DATABASE_URL', 'file::memory:', 'must be file:'],
    ['DATABASE_URL', 'file://host/app.db', 'must be file:'],
    ['DATABASE_URL', 'postgres://db', 'with the name of a database'],
    ['DATABASE_URL', 'postgresql://me:a%b@db/app', 'has to stand there as "%25"'],
    ['DELETED_RECORDS_DAYS', '3651', 'from 0 to 3650'],
    ['HANDLER_TIMEOUT_SECONDS', '0', 'from 0.01'],
    ['REDIS_URL', 'localhost:6379', 'redis://'],
    ['REDIS_URL', 'redis://redis/prod', 'nothing but the number of a database'],
    ['REDIS_URL', 'redis://redis/1/2', 'nothing but the number of a database'],
    ['REDIS_URL', 'redis://redis?db=prod', 'nothing but the number of a database'],
    ['REDIS_URL', 'redis://redis/1?keyPrefix=app:', 'may have no keyPrefix'],
    ['REDIS_URL', 'redis://:a%b@redis', 'has to stand there as "%25"'],
    ['REDIS_URL', 'redis://a%b:c@redis', 'has to stand there as "%25"'],
    ['SESSION_SECRET', 'short', 'at least 32'],
    ['TOKEN_KEYS', KEY_A, 'entry 1 has no id'],
    ['TOKEN_KEYS', `a:${KEY_A},b:c2hvcnQ=`, 'entry 2 is a key of 5 bytes'],
    ['TOKEN_KEYS', 'a:***', 'entry 1 is not Base64'],
    ['TOKEN_KEYS', `a:${KEY_A},a:${KEY_B}`, 'an id twice'],
    ['TOKEN_KEYS', `a:${KEY_A},b:${KEY_A}`, 'a key twice'],
    ['SANDBOX_WINDOW_MS', '0', 'from 1'],
    ['SANDBOX_LATENCY_MS', '-1', 'from 0'],
    ['GUARD_ANALYTICS', '1 in 3', 'requests/seconds'],
    ['GUARD_RESOURCE', '5/0', 'above 0'],
    ['SANDBOX_GUARD_ANALYTICS', '1', 'requests/seconds'],
    ['SANDBOX_GUARD_RESOURCE', '0/1', 'above 0'],
    ['SANDBOX_HOST', 'http://x', 'host name'],
    ['SANDBOX_EXPOSE', 'yes', 'word for word'],
  ])('refuses %s=%s', (variable, value, problem) => {
    expect(problemsOf({ [variable]: value })[variable]).toContain(problem);
  });

  it('takes the guards of its own sandbox for those of the service, unless it is told others', () => {
    const sandbox = { SANDBOX_GUARD_RESOURCE: '3/2' };
    const three = { resource: { tier: '2', limit: 3, windowMs: 2_000 } };
    expect(load(sandbox).service.guards).toEqual(three);
    const four = { resource: { tier: '2', limit: 4, windowMs: 1_000 } };
    expect(load({ ...sandbox, GUARD_RESOURCE: '4/1' })).toMatchObject({
      service: { guards: four },
      sandbox: { guards: three },
    });
    expect(load({ ...PRODUCTION, ...sandbox }).service.guards).toEqual({});
  });

  it('names every problem at once, with an example each, and shows no secret', () => {
    const secrets = {
      REDIS_URL: 'http://:hush-1@redis',
      DATABASE_URL: 'postgres://me:hush-2%@db/app',
      SESSION_SECRET: 'hush-3',
      TOKEN_KEYS: 'a:hush-4',
      SERVICE_API_URL: 'https://me:hush-5@example.com',
    };
    const error = (() => {
      try {
        return load({ ...secrets, PORT: 'x' });
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(ConfigError);
    const { message, problems } = error as ConfigError;
    for (const variable of [
      ...Object.keys(secrets),
      'PORT',
      'SERVICE_AUTH_URL',
      'CLIENT_ID',
      'CLIENT_SECRET',
    ]) {
      expect(problems.map((problem) => problem.variable)).toContain(variable);
      expect(message).toMatch(new RegExp(`^ {2}${variable} .*\\n {6}example: ${variable}=.+`, 'm'));
    }
    expect(message).not.toContain('hush');
  });
});

describe('what goes together', () => {
  it('wants both addresses of the service, and its credentials', () => {
    expect(Object.keys(problemsOf({ SERVICE_API_URL: 'https://api.example.com' }))).toEqual([
      'SERVICE_AUTH_URL',
      'CLIENT_ID',
      'CLIENT_SECRET',
    ]);
    expect(Object.keys(problemsOf({ SERVICE_AUTH_URL: 'https://auth.example.com' }))).toEqual([
      'SERVICE_API_URL',
      'CLIENT_ID',
      'CLIENT_SECRET',
    ]);
  });

  it('takes own credentials for the sandbox, but not half of them', () => {
    expect(load({ CLIENT_ID: 'me', CLIENT_SECRET: 'mine' }).service).toMatchObject({
      clientId: 'me',
      clientSecret: 'mine',
      isSandbox: true,
    });
    expect(Object.keys(problemsOf({ CLIENT_ID: 'me' }))).toEqual(['CLIENT_SECRET']);
    expect(Object.keys(problemsOf({ CLIENT_SECRET: 'mine' }))).toEqual(['CLIENT_ID']);
  });

  it('wants addresses where it cannot know the port', () => {
    expect(problemsOf({ PORT: '0' })).toHaveProperty('PUBLIC_URL');
    expect(load({ PORT: '0', PUBLIC_URL: 'http://localhost:1234' }).port).toBe(0);
    expect(problemsOf({ SANDBOX_PORT: '0' })).toHaveProperty('SANDBOX_PORT');
  });
});

describe('proxies', () => {
  it('believes one behind https and none otherwise, unless it is told how many there are', () => {
    const hops = (env: Record<string, string>) => load(env).proxyHops;
    expect(hops({ PUBLIC_URL: 'https://app.example.com' })).toBe(1);
    expect(hops({ PUBLIC_URL: 'http://localhost:1' })).toBe(0);
    expect(hops({ PUBLIC_URL: 'https://app.example.com', PROXY_HOPS: '2' })).toBe(2);
    expect(hops({ PROXY_HOPS: '1' })).toBe(1);
  });

  it.each(['true', '-1', '11', '1.5'])('takes no %s for a number of them', (hops) => {
    expect(problemsOf({ PROXY_HOPS: hops })).toHaveProperty('PROXY_HOPS');
  });

  it('wants one at least where browsers come by https', () => {
    expect(problemsOf({ ...PRODUCTION, PROXY_HOPS: '0' })).toHaveProperty('PROXY_HOPS');
    expect(problemsOf({ PROXY_HOPS: '0' })).toEqual({});
  });
});

describe('production', () => {
  it('has no defaults for what would be unsafe', () => {
    expect(Object.keys(problemsOf({ NODE_ENV: 'production' })).sort()).toEqual(
      Object.keys(PRODUCTION)
        .filter((name) => name !== 'NODE_ENV')
        .sort(),
    );
    expect(problemsOf(PRODUCTION)).toEqual({});
  });

  it.each(['SERVICE_API_URL', 'SERVICE_AUTH_URL', 'SERVICE_NEXT_ORIGINS', 'PUBLIC_URL'])(
    'wants https in %s, except on this machine',
    (variable) => {
      expect(problemsOf({ ...PRODUCTION, [variable]: 'http://example.com' })[variable]).toContain('https');
      for (const host of ['localhost:1', 'app.localhost', '127.0.0.1:4010', '127.1.2.3', '[::1]:80']) {
        expect(problemsOf({ ...PRODUCTION, [variable]: `http://${host}` })).toEqual({});
      }
      expect(problemsOf({ ...PRODUCTION, [variable]: 'http://127.0.0.1.example.com' })).toHaveProperty(
        variable,
      );
    },
  );

  it('has Node check who answers', () => {
    const unchecked = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
    expect(problemsOf({ ...PRODUCTION, ...unchecked }).NODE_TLS_REJECT_UNAUTHORIZED).toMatch(
      /must not be 0 .*NODE_EXTRA_CA_CERTS/,
    );
    expect(problemsOf({ ...PRODUCTION, NODE_TLS_REJECT_UNAUTHORIZED: '1' })).toEqual({});
    expect(problemsOf(unchecked)).toEqual({});
    expect(load(unchecked).wayOut.checksCertificates).toBe(false);
    expect(load({}).wayOut.checksCertificates).toBe(true);
  });

  it.each([
    [{ NODE_USE_ENV_PROXY: '1' }, true],
    [{ NODE_OPTIONS: '--no-warnings --use-env-proxy' }, true],
    [{ NODE_USE_ENV_PROXY: '0', HTTPS_PROXY: 'http://proxy.example.com' }, false],
    [{}, false],
  ])('goes out by a proxy where Node does: %j', (env, usesProxy) => {
    expect(load(env).wayOut.usesProxy).toBe(usesProxy);
  });

  it.each([
    ['file:data/app.db', 'the next release'],
    ['file:./app.db', 'the next release'],
    ['file:~/app.db', 'no shell puts anything in the place of "~" here'],
    ['file:$HOME/app.db', 'no shell puts anything in the place of "$" here'],
  ])('wants an absolute path of the database, not %s', (DATABASE_URL, cause) => {
    const found = problemsOf({ ...PRODUCTION, DATABASE_URL }).DATABASE_URL;
    expect(found).toContain('must have an absolute path in production');
    expect(found).toContain(cause);
    expect(problemsOf({ DATABASE_URL })).toEqual({});
  });

  it('takes PostgreSQL, whose password is a secret', () => {
    for (const DATABASE_URL of [
      'postgres://me:hush%3A1@db/app',
      'postgresql://db/app?user=me&password=hush:1',
    ]) {
      const config = load({ ...PRODUCTION, DATABASE_URL });
      expect(config.databaseUrl).toBe(DATABASE_URL);
      expect(configuredSecrets(config, PRODUCTION.REDIS_URL)).toContain('hush:1');
    }
  });

  it('wants an operator password that cannot be guessed quickly', () => {
    expect(problemsOf({ ...PRODUCTION, OPERATOR_PASSWORD: 'secret' })).toHaveProperty('OPERATOR_PASSWORD');
    expect(problemsOf({ OPERATOR_PASSWORD: 'secret' })).toEqual({});
  });

  describe.each([
    ['SESSION_SECRET', 'openssl rand -base64 48', 32],
    ['OPERATOR_PASSWORD', 'openssl rand -base64 24', 12],
  ])('wants a %s that somebody has made', (variable, command, length) => {
    const random = randomBytes(length).toString('base64');

    it.each([
      ['the placeholder that its own error shows', `<output of: ${command}>`, 'is a placeholder'],
      ['a placeholder between blanks', `\t<${random}> `, 'is a placeholder'],
      ['blanks', ' '.repeat(length), 'a blank'],
      ['a blank at its end', `${random} `, 'a blank'],
      ['the end of a line', `${random}\n`, 'a blank'],
      ['one letter', 'x'.repeat(length), 'is not random'],
      ['a pattern', 'abcd'.repeat(length / 4), 'is not random'],
    ])('not %s', (_what, secret, problem) => {
      const found = problemsOf({ ...PRODUCTION, [variable]: secret })[variable];
      expect(found).toContain(problem);
      expect(found).toContain(`make one with ${command}`);
      expect(found).not.toContain(secret.trim() || 'nothing');
      expect(problemsOf({ [variable]: secret })).toEqual({});
    });

    it('and takes what the command makes, in letters of any kind', () => {
      const forms = ['base64', 'base64url', 'hex'] as const;
      for (const form of forms) {
        const secret = randomBytes(length).toString(form);
        expect(problemsOf({ ...PRODUCTION, [variable]: secret })).toEqual({});
      }
      expect(problemsOf({ ...PRODUCTION, [variable]: 'correct horse <battery> & staple: good' })).toEqual({});
    });
  });

  it.each([
    ['zeros', Buffer.alloc(32)],
    ['a pattern', Buffer.from('0123456789'.repeat(4)).subarray(0, 32)],
  ])('wants token keys that are random, not %s', (_what, key) => {
    const TOKEN_KEYS = `a:${KEY_A},b:${key.toString('base64')}`;
    expect(problemsOf({ ...PRODUCTION, TOKEN_KEYS }).TOKEN_KEYS).toMatch(
      /"b" that is not random.*npm run keys/,
    );
    expect(problemsOf({ TOKEN_KEYS })).toEqual({});
  });

  it('generates and writes nothing', () => {
    const dataDir = `${tempDir()}/none`;
    expect(() => loadConfig({ NODE_ENV: 'production' }, { dataDir })).toThrow(ConfigError);
    loadConfig(PRODUCTION, { dataDir });
    expect(existsSync(dataDir)).toBe(false);
  });
});
