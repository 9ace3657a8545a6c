import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createLogger, type LoggerOptions, rememberSecret } from '../../src/runtime/logging.ts';
import { processFacts } from '../../src/runtime/process-facts.ts';
import { ServiceError, toServiceError } from '../../src/service/errors.ts';
import { testLogger } from '../support/test-logger.ts';

const SECRET = 'hush.A1b2C3d4E5f6';

describe('secrets', () => {
  it.each([
    'authorization',
    'Authorization',
    'cookie',
    'set-cookie',
    'access_token',
    'accessToken',
    'refresh_token',
    'client_secret',
    'clientSecret',
    'password',
    'sessionID',
    'code',
    'state',
    'code_verifier',
    'page_token',
    'redisUrl',
  ])('leaves out %s at any depth', (name) => {
    const { logger, text } = testLogger();
    logger.info({ [name]: SECRET }, 'flat');
    logger.info({ a: { b: [{ [name]: SECRET }] } }, 'deep');
    logger.info({ headers: { [name]: [SECRET, SECRET] } }, 'list');
    logger.child({ [name]: SECRET }).info('child');
    logger.child({ a: { [name]: SECRET } }).info('deep child');
    expect(text()).not.toContain(SECRET);
    expect(text().match(/\[redacted\]/g)).toHaveLength(5);
  });

  it.each([
    `GET https://x.example/oauth/callback?code=${SECRET}&state=${SECRET}`,
    `body {"access_token":"${SECRET}"} refused`,
    `grant_type=refresh_token&refresh_token=${SECRET}`,
    `header Authorization: Bearer ${SECRET}`,
    `header Basic ${Buffer.from(SECRET).toString('base64')}`,
    `connect redis://:${SECRET}@127.0.0.1:6379 failed`,
    `next is https://api.example/contacts?limit=100&page_token=${SECRET}`,
  ])('blanks them in texts: %s', (message) => {
    const { logger, text } = testLogger();
    logger.info(message);
    logger.info({ url: message }, 'field');
    logger.error(new Error(message));
    logger.error({ err: new Error('outer', { cause: new Error(message) }) });
    expect(text()).not.toContain(SECRET);
    expect(text()).not.toContain(Buffer.from(SECRET).toString('base64'));
    expect(text()).toContain('[redacted]');
  });

  it('keeps states of runs and codes of errors', () => {
    const { logger, lines } = testLogger();
    logger.info({ state: 'needs_reauthorization', code: 'UND_ERR_SOCKET', token: { rotations: 2 } }, 'plain');
    expect(lines).toMatchObject([
      { state: 'needs_reauthorization', code: 'UND_ERR_SOCKET', token: { rotations: 2 } },
    ]);
  });

  it('does not change what was given to it', () => {
    const given = { headers: { authorization: SECRET } };
    testLogger().logger.info(given, 'x');
    expect(given).toEqual({ headers: { authorization: SECRET } });
  });
});

describe('errors', () => {
  it('are logged with their cause and plain fields, and nothing else that hangs on them', () => {
    const { logger, lines, text } = testLogger();
    const cause = Object.assign(new TypeError('inner'), { code: 'ECONNRESET', response: { body: SECRET } });
    const error = Object.assign(new Error('outer', { cause }), {
      status: 502,
      request: { headers: { x: SECRET } },
      body: SECRET,
    });
    logger.error({ err: error, other: { nested: error } }, 'failed');
    logger.child({ err: error }).info('child');
    const serialized = {
      type: 'Error',
      message: 'outer',
      stack: expect.stringContaining('logging.test.ts'),
      status: 502,
      cause: { type: 'TypeError', message: 'inner', code: 'ECONNRESET' },
    };
    expect(lines).toEqual([
      {
        level: 'error',
        time: expect.any(String),
        err: serialized,
        other: { nested: serialized },
        msg: 'failed',
      },
      { level: 'info', time: expect.any(String), err: serialized, msg: 'child' },
    ]);
    expect(text()).not.toContain(SECRET);
  });

  it('have no stack when they come with the trade: what they say is enough', () => {
    const { logger, lines, text } = testLogger();
    const named = (name: string, message: string, facts: object = {}) =>
      Object.assign(new Error(message), { name }, facts);
    const trade = [
      new ServiceError('wait', 'slow down', { status: 429 }),
      new ServiceError('wait', 'not JSON', { cause: new SyntaxError('Unexpected token') }),
      new ServiceError('wait', 'cut off', {
        cause: named('SocketError', 'closed', { code: 'UND_ERR_SOCKET' }),
      }),
      new ServiceError('wait', 'slow', {
        cause: named('TokenRequestError', 'x', { cause: named('Error', 'x', { code: 'ECONNREFUSED' }) }),
      }),
      new ServiceError('wait', 'busy', {
        cause: named('ConsumerError', 'It was not done.'),
      }),
      named('InstallError', 'The service did not say which company this is.', {
        cause: new ServiceError('wait', 'trouble', { status: 503 }),
      }),
      named('RedisError', 'Redis cannot be asked', { cause: new Error('Command timed out') }),
      named('MaxRetriesPerRequestError', 'Reached the max retries per request limit'),
      new Error("Socket timeout. Expecting data, but didn't receive any in 6000ms."),
      named('ReplyError', 'LOADING Redis is loading the dataset in memory'),
      named('ReplyError', 'BUSY Redis is busy running a script.'),
      named('StoreError', 'another process keeps it locked', {
        cause: named('SqliteError', 'database is locked', { code: 'SQLITE_BUSY' }),
      }),
    ];
    for (const err of trade) logger.warn({ err }, 'expected');
    expect(text()).not.toContain('"stack"');
    expect(lines[0]?.err).toEqual({ type: 'ServiceError', message: 'slow down', status: 429 });
    expect(lines[1]?.err).toMatchObject({ cause: { type: 'SyntaxError', message: 'Unexpected token' } });
  });

  it("keep the stack where a line of the code is to blame, the handler's, too", () => {
    const { logger, lines } = testLogger();
    const stack = expect.stringContaining('logging.test.ts');
    const integrators = Object.assign(new Error('CRM says 500'), { code: 'ECONNREFUSED' });
    const failed = new Error('CRM says 500', { cause: integrators });
    logger.warn({ err: Object.assign(failed, { name: 'ConsumerError' }) });
    logger.warn({ err: toServiceError(new TypeError('x is not a function')) });
    logger.warn({ err: toServiceError(new SyntaxError('of our own')) });
    logger.warn({
      err: Object.assign(new Error('no such column'), { name: 'SqliteError', code: 'SQLITE_ERROR' }),
    });
    expect(lines).toMatchObject([
      { err: { type: 'ConsumerError', cause: { message: 'CRM says 500', stack } } },
      { err: { type: 'ServiceError', cause: { type: 'TypeError', stack } } },
      { err: { cause: { type: 'SyntaxError', stack } } },
      { err: { type: 'SqliteError', stack } },
    ]);
    expect(lines[0]?.err).not.toHaveProperty('stack');
  });

  it('tell of an answer that hangs on them its status alone', () => {
    const { logger, lines } = testLogger();
    const cause = new Response(SECRET, { status: 503 });
    logger.warn({
      err: Object.assign(new Error('unexpected status', { cause }), {
        code: 'OAUTH_RESPONSE_IS_NOT_CONFORM',
      }),
    });
    expect(lines[0]?.err).toEqual({
      type: 'Error',
      message: 'unexpected status',
      code: 'OAUTH_RESPONSE_IS_NOT_CONFORM',
      status: 503,
    });
  });

  it('are logged by their beginning where they are long, with their frames, and no secret is split', () => {
    const { logger, lines, text } = testLogger();
    const token = `at_${randomBytes(32).toString('base64url')}`;
    rememberSecret(token);
    // The cut falls on every place of the token once.
    for (const index of token.split('').keys()) {
      const message = `${'word '.repeat(800).slice(index)}${token} ${'a-'.repeat(150_000)}`;
      const facts = { code: message, name: `E ${message}` };
      logger.warn({ err: Object.assign(new Error(message), facts) }, 'long');
    }
    expect(lines).toHaveLength(token.length);
    for (const { err } of lines) {
      const { message, stack } = err as { message: string; stack: string };
      expect(JSON.stringify(err).length).toBeLessThan(20_000);
      expect(message).toMatch(/^[word ]{3000}.*…$/);
      expect(stack).toContain('logging.test.ts');
    }
    expect(text()).not.toContain(token.slice(0, 5));
  });

  it('may be anything, and go round in circles', () => {
    const { logger, lines } = testLogger();
    const loop = new Error('loop');
    loop.cause = loop;
    logger.error({ err: loop });
    logger.error({ err: new AggregateError([new Error('first')], 'several') });
    expect(lines[0]).toMatchObject({ err: { message: 'loop', cause: { message: 'loop' } } });
    expect(lines[1]).toMatchObject({ err: { cause: { message: 'first' } } });
  });
});

it('copes with circles, depth, and what is no plain object', () => {
  const { logger, lines } = testLogger();
  const circle: Record<string, unknown> = { name: 'circle' };
  circle.self = circle;
  logger.info({
    circle,
    url: new URL('https://x.example/a'),
    at: new Date(0),
    bytes: Buffer.from(SECRET),
    set: null,
  });
  expect(lines[0]).toMatchObject({
    circle: { name: 'circle' },
    url: 'https://x.example/a',
    at: '1970-01-01T00:00:00.000Z',
    bytes: '[17 bytes]',
    set: null,
  });
  expect(JSON.stringify(lines[0])).toContain('[too deep]');
});

it('keeps to the level', () => {
  const written: string[] = [];
  const logger = createLogger(
    { logLevel: 'warn', production: true },
    { destination: { write: (line) => written.push(line) } },
  );
  logger.info('no');
  logger.warn('yes');
  expect(written.map((line) => JSON.parse(line).msg)).toEqual(['yes']);
});

it('says in every line which process of which version wrote it', () => {
  const facts = processFacts();
  expect(facts.version).toMatch(/^\d+\.\d+\.\d+/);
  expect(facts.processId).not.toBe(processFacts().processId);
  const { logger, lines } = collect({ facts });
  logger.child({ job: 'run-1' }).info('done');
  expect(lines).toMatchObject([{ ...facts, job: 'run-1', msg: 'done' }]);
});

it('hands on the errors of lines at error and fatal, with their message', () => {
  const told: unknown[] = [];
  const { logger } = collect({ onError: (error, line) => told.push([error, line]) });
  const error = new Error('broken');
  logger.child({ requestId: 'r' }).error({ err: error }, `no access_token=${SECRET}`);
  logger.fatal(error);
  logger.error({ err: 'no error' }, 'a text');
  logger.error('a text alone');
  logger.warn({ err: error }, 'it heals by itself');
  expect(told).toEqual([
    [error, { message: 'no access_token=[redacted]' }],
    [error, { message: 'broken' }],
  ]);
});

function collect(options: LoggerOptions) {
  const lines: unknown[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  return { logger: createLogger({ logLevel: 'info', production: true }, { ...options, destination }), lines };
}

it('writes a line for people when asked, without the secrets either', async () => {
  const written: string[] = [];
  const destination = Object.assign(new EventEmitter(), { write: (line: string) => written.push(line) });
  const options = { pretty: true, destination, facts: processFacts() };
  const logger = createLogger({ logLevel: 'info', production: false }, options);
  logger.info({ requestId: 'r', access_token: SECRET }, 'hello');
  await expect.poll(() => written.join('')).toMatch(/INFO.*hello.*\[redacted\].*\n$/);
  expect(written.join('').trim().split('\n')).toHaveLength(1);
  expect(written.join('')).not.toMatch(/processId|hush/);
});
