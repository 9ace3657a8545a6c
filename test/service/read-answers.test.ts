import { expect, test } from 'vitest';
import { ServiceError, toServiceError } from '../../src/service/errors.ts';
import { readIdentity as readWith } from '../../src/service/identity.ts';
import { checkListPage, readListPage } from '../../src/service/list-page.ts';

test('a page: its records, with the text of each, and what comes next', () => {
  const body = '{ "_pagination": {"next": "https://x.example/p2"}, "_results": [{"id": "1"}, {"id": 2}] }';
  const page = readListPage(Buffer.from(body));
  expect(page.next).toBe('https://x.example/p2');
  const { items, texts } = page.read();
  expect(items).toEqual([{ id: '1' }, { id: 2 }]);
  expect(texts.map(String)).toEqual(['{"id":"1"}', '{"id":2}']);
});

test('bytes that are no UTF-8 are kept as they are read', () => {
  const bytes = Buffer.concat([
    Buffer.from('{"_pagination":{"next":null},"_results":[{"id":"1","name":"'),
    Buffer.from([0xff]),
    Buffer.from('"}]}'),
  ]);
  const page = readListPage(bytes).read();
  expect(page.texts.map(String)).toEqual(['{"id":"1","name":"\ufffd"}']);
  expect(page.texts[0]).toEqual(Buffer.from('{"id":"1","name":"\ufffd"}'));
});

test('ids are read as JSON.parse reads them, beyond ASCII too', () => {
  const ids = ['1', 'é', '日本', '😀', 'a\ud800', '', 7, null, ['é'], { id: 'é' }];
  const texts = [
    ...ids.map((id) => JSON.stringify({ name: 'ü', id })),
    '{"id":"\\u00e9é"}',
    '"é"',
    '{"name":"é"}',
  ];
  const page = readListPage(Buffer.from(`{"_pagination":{"next":null},"_results":[${texts.join(',')}]}`));
  const { items, texts: read } = page.read();
  const idOf = (item: unknown) => (item as { id?: unknown }).id;
  const plain = (id: unknown) => typeof id !== 'object' || id === null;
  for (const [place, text] of texts.entries()) {
    const id = idOf(JSON.parse(text));
    if (plain(id)) expect(idOf(items[place])).toBe(id);
    expect(typeof items[place]).toBe(typeof JSON.parse(text));
  }
  expect(read.map(String)).toEqual(texts);
});

test('where a page leads is told before it is parsed; what is no JSON is found out then', () => {
  const body = '{"_pagination":{"next":"https://x.example/p2"},"_results":[{"id":tru}]}';
  const page = readListPage(Buffer.from(body));
  expect(page.next).toBe('https://x.example/p2');
  expect(() => page.read()).toThrow(expect.objectContaining({ remedy: 'wait' }));
});

test('an empty page with a next is no end, and null is', () => {
  expect(
    readListPage(Buffer.from('{"_pagination":{"next":"https://x.example/p2"},"_results":[]}')).next,
  ).not.toBeNull();
  expect(readListPage(Buffer.from('{"_pagination":{"next":null},"_results":[]}')).next).toBeNull();
});

test.each([
  ['cut short', '{"_pagination":{"next":null},"_results":[{"id"'],
  ['empty', ''],
  ['HTML', '<h1>hello</h1>'],
  ['null', 'null'],
  ['a number', '7'],
  ['a list', '[]'],
  ['without results', '{"_pagination":{"next":null}}'],
  ['with results that are no list', '{"_pagination":{"next":null},"_results":{}}'],
  ['without pagination', '{"_results":[]}'],
  ['with pagination that is null', '{"_pagination":null,"_results":[]}'],
  ['without a next', '{"_pagination":{},"_results":[]}'],
  ['with an empty next', '{"_pagination":{"next":""},"_results":[]}'],
  ['with a next that is false', '{"_pagination":{"next":false},"_results":[]}'],
  ['an error as well', '{"_error":{"status":500},"_pagination":{"next":null},"_results":[]}'],
  ['an error as well, behind all else', '{"_pagination":{"next":null},"_results":[],"_error":"oops"}'],
  ['followed by something', '{"_pagination":{"next":null},"_results":[]} x'],
  ['led by a mark of its byte order', '\ufeff{"_pagination":{"next":null},"_results":[]}'],
  ['with an item that is no JSON', '{"_pagination":{"next":null},"_results":[{"id":01}]}'],
  ['with items that no comma parts', '{"_pagination":{"next":null},"_results":[{} {}]}'],
])('a page that is %s is not taken for the last one: it is asked for again', (_what, body) => {
  const read = () => readListPage(Buffer.from(body)).read();
  expect(read).toThrow(ServiceError);
  expect(read).toThrow(expect.objectContaining({ remedy: 'wait' }));
});

test('a page of which an error is null is one', () => {
  const page = '{"_error":null,"_pagination":{"next":null},"_results":[{"id":"crd_1"}]}';
  expect(readListPage(Buffer.from(page)).read().items).toEqual([{ id: 'crd_1' }]);
  expect(() => checkListPage(JSON.parse(page))).not.toThrow();
  const bad = JSON.parse(page.replace('null', '{"status":500}'));
  expect(() => checkListPage(bad)).toThrow(expect.objectContaining({ remedy: 'wait' }));
});

/** What the answer about the company was asked with. */
const TOKEN = 'at_+/secret-of-the-tests=';
const OTHER_SECRET = 'rt_another-of-the-tests';

function readIdentity(body: string, token: string) {
  return readWith(body, token, (text) => text.includes(OTHER_SECRET));
}

test.each([
  ['{"id":"cmp_1","name":"Acme"}', { id: 'cmp_1', name: 'Acme' }],
  ['{"id":17,"name":"  Åkesson "}', { id: '17', name: 'Åkesson' }],
  ['{"id":17.0}', { id: '17', name: undefined }],
  ['{"id":1,"id":12345678901234567890}', { id: '12345678901234567890', name: undefined }],
  [
    '{"_links":{"id":7.5},"id":-90071992547409931,"of":{"id":1}}',
    { id: '-90071992547409931', name: undefined },
  ],
  ['{"id":"cmp_1","name":"Caf\ufffd"}', { id: 'cmp_1', name: 'Caf\ufffd' }],
  ['{"id":"cmp_1"}', { id: 'cmp_1', name: undefined }],
  ['{"id":"cmp_1","name":"  "}', { id: 'cmp_1', name: undefined }],
  ['{"id":"cmp_1","name":7}', { id: 'cmp_1', name: undefined }],
])('an identity: %s', (body, identity) => {
  expect(readIdentity(body, TOKEN)).toEqual(identity);
});

test.each(['{}', '{"name":"Acme"}', '{"id":null}'])('a whole answer that does not tell: %s', (body) => {
  expect(readIdentity(body, TOKEN)).toBeUndefined();
});

test.each([
  ['{"id":""}', 'neither a text nor an integer'],
  ['{"id":1.5}', 'neither a text nor an integer'],
  ['{"id":1e30}', 'neither a text nor an integer'],
  ['{"id":{"id":"cmp_1"}}', 'neither a text nor an integer'],
  [String.raw`{"id":"cmp_\ud800"}`, 'no Unicode text'],
  ['{"id":"caf\ufffd"}', 'no Unicode text'],
  [`{"id":"cmp_${TOKEN}"}`, 'holds the access token'],
  [`{"id":"cmp_${encodeURIComponent(TOKEN)}"}`, 'holds the access token'],
  [`{"id":"cmp_${OTHER_SECRET}"}`, 'holds a secret of the app'],
  ['null', 'it is no object'],
  ['[]', 'it is no object'],
  ['"cmp_1"', 'it is no object'],
  ['{"id":"cmp_1"', 'it is not JSON'],
  ['<h1>', 'it is not JSON'],
  ['', 'it is empty'],
])('an answer that is not taken for one that does not tell: %s', (body, why) => {
  const read = () => readIdentity(body, TOKEN);
  expect(read).toThrow(ServiceError);
  expect(read).toThrow(expect.objectContaining({ remedy: 'wait', message: expect.stringContaining(why) }));
  expect(read).not.toThrow(TOKEN);
  expect(read).not.toThrow(OTHER_SECRET);
});

test('names and ids of a company are bounded: a long name is cut, a long id is none', () => {
  const read = (id: string, name: string) => readIdentity(JSON.stringify({ id, name }), TOKEN);
  const keys = '\u{1f511}'.repeat(5_000);
  const { name = '' } = read('i'.repeat(1_000), ` x${keys}`) ?? {};
  expect(name.length).toBe(200);
  expect(name.isWellFormed()).toBe(true);
  expect(name.slice(0, -1)).toBe(`x${keys}`.slice(0, 199));
  expect(() => read('i'.repeat(1_001), 'Acme')).toThrow('longer than 1000 characters');
});

test('an error of the family stays itself; any other becomes trouble that may pass', () => {
  const own = new ServiceError('give_up', 'no');
  expect(toServiceError(own)).toBe(own);
  const cause = new Error('disk full');
  const wrapped = toServiceError(cause);
  expect(wrapped).toMatchObject({ remedy: 'wait', status: undefined, retryAfterMs: undefined });
  expect(wrapped.message).toContain('disk full');
  expect(wrapped.cause).toBe(cause);
  expect(toServiceError('a string').message).toContain('a string');
});

test('a page says how much of memory it keeps: more than came, where that is not UTF-8', () => {
  const page = (name: string) =>
    Buffer.from(`{"_results":[{"id":"a","name":"${name}"}],"_pagination":{"next":null}}`, 'latin1');
  const [plain, odd] = [page('e'.repeat(1_000)), page('\xe9'.repeat(1_000))];
  expect(readListPage(plain).keptBytes).toBe(plain.length);
  expect(readListPage(odd).keptBytes).toBeGreaterThan(4 * 1_000);
});
