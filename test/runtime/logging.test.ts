import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { CompanyFinder } from '../../src/runtime/company-finder.ts';
import { createLogger, type LoggerOptions } from '../../src/runtime/logging.ts';
import { processFacts } from '../../src/runtime/process-facts.ts';
import { testLogger } from '../support/test-logger.ts';

const SECRET = 'hush.A1b2C3d4E5f6';

test.each([
  ...['authorization', 'Authorization', 'cookie', 'set-cookie', 'password', 'secret', 'token'],
  ...['access_token', 'accessToken', 'refresh_token', 'client_secret', 'clientSecret'],
  ...['tokens', 'jwt', 'apiKey', 'api_keys', 'sid', 'connect.sid', 'sessionId', 'credentials', 'private_key'],
])('the log blanks a field %s at any depth', (name) => {
  const { logger, lines } = testLogger();
  const given = { [name]: SECRET, requests: [{ headers: { [name]: [SECRET] } }] };
  logger.info(given, 'line');
  expect(lines).toMatchObject([{ [name]: '[redacted]', requests: [{ headers: { [name]: '[redacted]' } }] }]);
  expect(given[name]).toBe(SECRET);
});

const loop: Record<string, unknown> = {};
loop.self = loop;
const throwing = { toJSON: () => expect.unreachable() };

test.each<[unknown, unknown]>([
  [new URL('https://x.example/a'), 'https://x.example/a'],
  [new Date(0), '1970-01-01T00:00:00.000Z'],
  [new Response(SECRET, { headers: { 'x-api': SECRET } }), '[Response]'],
  [new Map([['a', SECRET]]), '[Map]'],
  [Buffer.from(SECRET), '[Buffer]'],
  [{ bytes: new Uint8Array(3) }, { bytes: '[Buffer]' }],
  [new URL(`https://x.example/cb?code=${SECRET}`), 'https://x.example/cb?code=[redacted]'],
  [
    { toJSON: () => ({ body: `Bearer ${SECRET}`, jwt: SECRET }) },
    { body: 'Bearer [redacted]', jwt: '[redacted]' },
  ],
  [Object.create(null), {}],
  [5n, '5'],
  [loop, undefined],
  [throwing, undefined],
])('a field may be anything (%#)', (value, expected) => {
  const { logger, lines } = testLogger();
  logger.info({ value }, 'line');
  logger.info(Buffer.from('x'), 'line');
  expect(lines[0]).toMatchObject({ msg: 'line' });
  expect(lines[0]?.value).toEqual(expected);
});

test('the log blanks a secret in every text, list and error', () => {
  const { logger, lines, text } = testLogger();
  const message = `refused Bearer ${SECRET}`;
  const error = new Error(message);
  logger.info(message);
  logger.info('%s and %s', message, message);
  logger.error(error);
  logger.error({ err: error });
  logger.error({ err: message });
  logger.error({ reason: new Error('outer', { cause: error }) }, message);
  logger.error({ err: new TypeError(`CRM says\n    at Bearer ${SECRET}`) }, 'failed');
  logger.error('failed: %s %j', error, { access_token: SECRET });
  logger.child({ err: error }).info('child');
  logger.child({ access_token: SECRET, of: { url: `https://x.example/cb?code=${SECRET}` } }).info('child');
  logger.info({ url: `https://x.example/cb?code=${SECRET}`, list: [message] }, 'line');
  logger.error({ err: Object.assign(new Error('x'), { name: message, code: message }) }, 'line');
  expect(lines).toHaveLength(12);
  expect(text()).not.toContain('hush');
});

test('ids stay, although they look like tokens', () => {
  const { logger, lines } = testLogger();
  const ids = {
    requestId: randomUUID(),
    record: 'cnv_0123456789abcdef0123456789',
    writeKey: 'refund:cnv_0123456789abcdef0123456789',
  };
  logger.info({ ...ids, other: randomUUID(), key: randomUUID() }, 'line');
  expect(lines).toMatchObject([{ ...ids, other: '[redacted]', key: '[redacted]' }]);
});

test('a getter that throws leaves the line', () => {
  const { logger, lines } = testLogger();
  const broken = Object.defineProperty({}, 'err', { enumerable: true, get: () => expect.unreachable() });
  logger.info(broken, 'one');
  logger.error(
    { err: Object.defineProperty(new Error('x'), 'code', { get: () => expect.unreachable() }) },
    'two',
  );
  logger.child(broken).info('three');
  expect(lines.map(({ msg }) => msg)).toEqual(['one', 'two', 'three']);
});

/** An error as its library throws it. */
const named = (name: string, message: string, facts: object = {}) =>
  Object.assign(new Error(message), { name }, facts);

test('logs only listed fields of an error and its causes', () => {
  const { logger, lines } = testLogger();
  const cause = named('SocketError', 'closed', { code: 'UND_ERR_SOCKET', socket: { token: SECRET } });
  const error = named('ServiceError', 'bad', { cause, status: 502, headers: {}, body: SECRET });
  logger.warn({ err: error, other: error }, 'failed');
  const expected = {
    type: 'ServiceError',
    message: 'bad',
    status: 502,
    cause: { type: 'SocketError', message: 'closed', code: 'UND_ERR_SOCKET' },
  };
  expect(lines[0]?.err).toEqual(expected);
  expect(lines[0]?.other).toEqual(expected);
});

const LONGEST = expect.stringMatching(/^.{2000}…$/);
const stack = expect.stringMatching(/^ {4}at .*logging\.test\.ts/);
const handlers = named('Error', 'CRM says 500', { code: 'ECONNREFUSED' });
const circle = new Error('circle');
circle.cause = circle;

test.each<[string, unknown, object]>([
  ['of JavaScript with its stack', new TypeError('x is no function'), { stack }],
  ['of the handler with its stack', named('ConsumerError', 'x', { cause: handlers }), { cause: { stack } }],
  ['with a code and without its stack', handlers, { stack: undefined }],
  ['of a library without its stack', named('ReplyError', 'LOADING'), { stack: undefined }],
  ['of several with the first', new AggregateError([handlers], ''), { cause: { code: 'ECONNREFUSED' } }],
  ['that causes itself', circle, { cause: { message: 'circle' } }],
  ['with a long message', named('Error', 'word '.repeat(9_999)), { message: LONGEST }],
  ['with an object as its message', named('Error', '', { message: {} }), { message: '[object Object]' }],
])('logs an error %s', (_what, err, expected) => {
  const { logger, lines } = testLogger();
  logger.error({ err }, 'failed');
  expect({ stack: undefined, ...(lines[0]?.err as object) }).toMatchObject(expected);
});

function collect(options: LoggerOptions, logLevel = 'info') {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  return { logger: createLogger({ logLevel, production: true }, { ...options, destination }), lines };
}

test('every line names its process and version, from its level on', () => {
  const facts = processFacts();
  expect(facts.version).toMatch(/^\d+\.\d+\.\d+/);
  expect(facts.processId).not.toBe(processFacts().processId);
  const { logger, lines } = collect({ facts }, 'warn');
  logger.info('no');
  logger.child({ job: 'run-1' }).warn('done');
  expect(lines).toMatchObject([{ ...facts, level: 'warn', job: 'run-1', msg: 'done' }]);
});

test('passes on the errors of lines at error and fatal, with the message', () => {
  const told: unknown[] = [];
  const { logger } = collect({ onError: (error, line) => told.push([error, line]) });
  const error = new Error('broken');
  logger.child({ requestId: 'r' }).error({ err: error }, `no access_token=${SECRET}`);
  logger.fatal(error);
  logger.error({ err: error });
  logger.error({ err: 'no error' }, 'a text');
  logger.error('a text alone');
  logger.warn({ err: error }, 'it heals by itself');
  expect(told).toEqual([
    [error, { message: 'no access_token=[redacted]' }],
    [error, { message: 'broken' }],
    [error, { message: 'broken' }],
  ]);
});

test('a person reads one line, without the secrets either', async () => {
  const written: string[] = [];
  const destination = Object.assign(new EventEmitter(), { write: (line: string) => written.push(line) });
  const options = { pretty: true, destination, facts: processFacts() };
  const logger = createLogger({ logLevel: 'info', production: false }, options);
  logger.info({ requestId: 'r', access_token: SECRET }, 'hello');
  await expect.poll(() => written.join('')).toMatch(/^.*INFO.*hello.*\[redacted\].*\n$/);
  expect(written.join('')).not.toMatch(/processId|hush/);
  written.length = 0;
  logger.info('red \u001b[31m, up \u001b[1A, forged\n[12:00:00] INFO: line \u009b2J');
  await expect
    .poll(() => written.join(''))
    .toContain(String.raw`red \u001b[31m, up \u001b[1A, forged\u000a[12:00:00] INFO: line \u009b2J`);
});

/** Runs a script that logs to a pipe. */
function startLogging(script: string) {
  const path = join(import.meta.dirname, '../../src/runtime/logging.ts');
  const source = `import { createLogger } from ${JSON.stringify(path)};
    const logger = createLogger({ logLevel: 'info', production: true }); ${script}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], { cwd: process.cwd() });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

test('a process continues while nobody reads its log', async () => {
  const { stderr } = startLogging(`
    for (let n = 0; n < 100; n++) logger.info('x'.repeat(100_000));
    setTimeout(() => process.stderr.write('alive'), 100);`);
  expect(String((await once(stderr, 'data'))[0])).toBe('alive');
});

test('a process continues when the reader of its log is gone', async () => {
  const { stdout, stderr } = startLogging(`
    setInterval(() => logger.info('x'), 10);
    setTimeout(() => process.stderr.write('alive'), 300);`);
  await once(stdout, 'data');
  stdout.destroy();
  expect(String((await once(stderr, 'data'))[0])).toBe('alive');
});

test('a process that ends at once writes its last lines', async () => {
  const child = startLogging(`
    for (let n = 0; n < 2_000; n++) logger.info('x'.repeat(1_000));
    logger.fatal('the end');
    process.exit(3);`);
  let written = '';
  child.stdout.on('data', (chunk) => (written += String(chunk)));
  expect((await once(child, 'close'))[0]).toBe(3);
  expect(written.trimEnd().split('\n')).toHaveLength(2_001);
  expect(written).toMatch(/"msg":"the end"\}\n$/);
});

test('lines at warn and above say of which company they are, and where its page is', async () => {
  const companies = new CompanyFinder();
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const logger = createLogger({ logLevel: 'info', production: true }, { destination, companies });
  logger.warn({ instanceId: 'ins_1' }, 'nobody knows yet');
  let asked = 0;
  companies.find = async (id) => {
    asked++;
    if (id === 'ins_9') throw new Error('no database');
    return { company: `Acme ${id}`, page: `https://x.example/ops/instances/${id}` };
  };
  logger.warn({ instanceId: 'ins_1', n: 1 }, 'first');
  await expect.poll(() => lines.length).toBe(2);
  const child = logger.child({ instanceId: 'ins_1' });
  child.error(new Error('It broke.'));
  child.warn('second');
  child.info('third');
  logger.error({ instanceId: 'ins_9' }, 'unknown');
  await expect.poll(() => lines.length).toBe(6);
  const facts = { company: 'Acme ins_1', page: 'https://x.example/ops/instances/ins_1' };
  expect(lines).toMatchObject([
    { msg: 'nobody knows yet' },
    { msg: 'first', n: 1, ...facts },
    { msg: 'It broke.', err: { message: 'It broke.' }, instanceId: 'ins_1', ...facts },
    { msg: 'second', ...facts },
    { msg: 'third' },
    { msg: 'unknown', instanceId: 'ins_9' },
  ]);
  expect(lines.map((line) => 'company' in line)).toEqual([false, true, true, true, false, false]);
  expect(asked).toBe(2);
});
