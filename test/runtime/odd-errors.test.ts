import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { rememberSecret } from '../../src/runtime/logging.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { testLogger } from '../support/test-logger.ts';

const TOKEN = `at_${randomBytes(32).toString('base64url')}`;
rememberSecret(TOKEN);

/** An error with something in the place of what it usually has. */
function odd(facts: PropertyDescriptorMap): Error {
  return Object.defineProperties(new Error('as usual'), facts);
}

const throwing = (): never => {
  throw new Error('not to be looked at');
};
const circle: Record<string, unknown> = { why: 'quota' };
circle.self = circle;

/** What is thrown, and what the log makes of it. */
const ODD: [string, Error, object][] = [
  [
    'a message that is an object',
    odd({ message: { value: { error: 'quota', at: 1n } } }),
    { type: 'Error', message: '{"error":"quota","at":"1"}' },
  ],
  ['no message', odd({ message: { value: undefined } }), { type: 'Error', message: '' }],
  ['a number as its message', odd({ message: { value: 5 } }), { message: '5' }],
  ['a symbol as its message', odd({ message: { value: Symbol('five') } }), { message: 'Symbol(five)' }],
  ['a function as its message', odd({ message: { value: throwing } }), { message: 'a function' }],
  ['a message that throws', odd({ message: { get: throwing } }), { message: '[cannot be read]' }],
  [
    'a message in a circle',
    odd({ message: { value: circle } }),
    { message: expect.stringMatching(/^\{"why":"quota","self":\{.*\[too deep\]/) },
  ],
  [
    'a message whose toString and toJSON throw',
    odd({ message: { value: { toString: throwing, toJSON: throwing } } }),
    { message: '[cannot be read]' },
  ],
  [
    'a message that is a list with what throws in it',
    odd({
      message: { value: ['one', Object.defineProperty({}, 'two', { get: throwing, enumerable: true })] },
    }),
    { message: '["one",{"two":"[cannot be read]"}]' },
  ],
  ['no name', odd({ name: { value: undefined } }), { type: 'Error', message: 'as usual' }],
  ['a name that is an object', odd({ name: { value: { a: 1 } } }), { type: '{"a":1}' }],
  ['a name that throws', odd({ name: { get: throwing } }), { type: '[cannot be read]' }],
  ['a stack that is an object', odd({ stack: { value: { at: 'x' } } }), { message: 'as usual' }],
  [
    'fields that throw',
    odd({ status: { get: throwing }, ownSecret: { get: throwing } }),
    { message: 'as usual', status: '[cannot be read]' },
  ],
  ['a cause that throws', odd({ cause: { get: throwing } }), { message: 'as usual' }],
  [
    'a cause with such a message',
    odd({ cause: { value: odd({ message: { value: { error: 'quota' } } }) } }),
    { cause: { type: 'Error', message: '{"error":"quota"}' } },
  ],
  [
    'no list of its errors',
    Object.assign(new AggregateError([], 'several'), { errors: undefined }),
    { message: 'several' },
  ],
];

describe('an error with anything in the place of its texts', () => {
  it.each(ODD)('is logged in any way: with %s', (_, error, expected) => {
    const { logger, lines } = testLogger();
    logger.warn({ err: error, place: { err: error } }, 'in a field');
    logger.error(error);
    logger.warn(error, 'with words');
    logger.warn({ err: error });
    logger.child({ err: error }).info('of a child');
    expect(lines).toHaveLength(5);
    for (const line of lines) expect(line.err).toMatchObject(expected);
    expect(lines[0]?.place).toEqual({ err: lines[0]?.err });
  });

  it('that is its own message, or throws at any question, is logged, too', () => {
    const { logger, lines } = testLogger();
    const loop = odd({ message: { value: {}, writable: true } });
    Object.assign(loop.message, { error: loop });
    logger.warn({ err: loop }, 'loop');
    const closed = new Proxy(new Error('closed'), {
      get: throwing,
      getPrototypeOf: throwing,
      ownKeys: throwing,
    });
    logger.warn({ err: closed, rows: [1, closed] }, 'closed');
    logger.warn(closed, 'by itself');
    expect(lines).toMatchObject([
      { msg: 'loop', err: { message: '{"error":"[an error]"}' } },
      { msg: 'closed', err: '[cannot be read]', rows: [1, '[cannot be read]'] },
      { msg: '[cannot be read]' },
    ]);
  });

  it('gives no secret away, and no more of it is looked at than is shown', () => {
    const { logger, lines, text } = testLogger();
    const row = () => ({ access_token: 'hush.A1b2C3d4E5f6', words: [TOKEN, 'word '.repeat(10)] });
    const message = { rows: Array.from({ length: 10_000 }, row), password: 'hush.A1b2C3d4E5f6' };
    logger.warn({ err: odd({ message: { value: message } }) }, 'large');
    logger.error(odd({ message: { value: { token_was: TOKEN } } }));
    expect(text()).not.toContain('hush.');
    expect(text()).not.toContain(TOKEN);
    expect(lines[1]).toMatchObject({ err: { message: '{"token_was":"[redacted]"}' } });
    expect(JSON.stringify(lines[0]).length).toBeLessThan(20_000);
  });
});

it('what throws when it is looked at is one line of the log like any other', () => {
  const { logger, lines } = testLogger();
  const odd = Object.defineProperty({ kept: 1 }, 'gone', { get: throwing, enumerable: true });
  logger.info({ odd, json: { toJSON: throwing }, big: { number: 1n } }, 'fields');
  logger.info(odd, 'itself');
  logger.info('of %s and %d', odd, Symbol('x') as unknown as number);
  expect(lines).toMatchObject([
    { msg: 'fields', odd: { kept: 1, gone: '[cannot be read]' }, json: '[cannot be read]' },
    { msg: 'itself', kept: 1, gone: '[cannot be read]' },
    { msg: expect.stringMatching(/^of /) },
  ]);
});

it('an error among the words of a line is one more of them', () => {
  const { logger, lines } = testLogger();
  logger.error('the push failed: %s', new TypeError('connection refused'));
  expect(lines).toMatchObject([{ msg: 'the push failed: TypeError: connection refused' }]);
});

it('objects that know each other in many ways are logged in part', () => {
  const { logger, lines } = testLogger();
  const nodes: Record<string, unknown>[] = Array.from({ length: 20 }, () => ({}));
  for (const node of nodes) for (const [index, other] of nodes.entries()) node[`to${index}`] = other;
  logger.info({ graph: nodes[0] }, 'graph');
  expect(JSON.stringify(lines[0])).toContain('[too much]');
  expect(JSON.stringify(lines[0]).length).toBeLessThan(1_000_000);
});

it.each(['throw-odd', 'reject-odd'])(
  'a process that such an error ends (%s) says so, and ends in order with code 1',
  async (what) => {
    const entry = spawnEntry('test/support/shutdown-process.ts', {}, { args: [what] });
    expect(await entry.exited, entry.output()).toEqual({ code: 1, signal: null });
    expect(entry.output()).toMatch(/"level":"fatal".*quota/);
    expect(entry.output()).toContain('closed in order');
  },
);
