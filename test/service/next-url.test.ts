import { expect, test } from 'vitest';
import { ServiceError } from '../../src/service/errors.ts';
import { AllowedOrigins, PageChain } from '../../src/service/next-url.ts';

const HOST = 'https://api.service.example';
const API = new AllowedOrigins(`${HOST}/v1`);

function refusal(next: string, origins = API): ServiceError {
  try {
    origins.check(next);
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error(`${next} was let through`);
}

test.each([
  `${HOST}/v1/contacts?limit=100&page_token=a%2Fb%3D%3D`,
  `${HOST}:443/v1/contacts`,
  'https://API.service.example/elsewhere',
  // Dots that lead nowhere.
  `${HOST}/v1/contacts?page_token=..%2F..`,
  `${HOST}/v1/contacts?after=/../x`,
  `${HOST}/v1/a..b/.well-known/x..`,
  `${HOST}/v1/...`,
  `${HOST}/v1/contacts;page=..;x`,
  `${HOST}/v1/a%20../contacts`,
])('the token may go to %s', (next) => {
  expect(API.check(next).url.href).toBe(new URL(next).href);
});

test.each([
  '?b=2&a=%7e%2B+x&page_token=AbC==',
  "?page_token='a%27b'",
  "?page_token=~!$&'()*+,;=:@/?-._%2f%2F[]|{}^`\\",
  '?',
])('the query %s is sent as given', (query) => {
  expect(API.check(`${HOST}/v1/contacts${query}`).target).toBe(`/v1/contacts${query}`);
  expect(API.check(`${HOST}/v1/contacts${query}#part`).target).toBe(`/v1/contacts${query}`);
});

test.each([
  ['', ''],
  ['?a=b c', '?a=b%20c'],
  ['?a="<b>"', '?a=%22%3Cb%3E%22'],
  ['?a=ü', '?a=%C3%BC'],
])('the query %j, which cannot be sent as given, is escaped', (query, sent) => {
  expect(API.check(`${HOST}/v1/contacts${query}`).target).toBe(`/v1/contacts${sent}`);
});

const ADVICE = 'SERVICE_NEXT_ORIGINS. If the service has moved';

test.each([
  ['another host', 'https://evil.example/v1/contacts?page_token=x', ADVICE],
  ['another port', `${HOST}:8443/v1/contacts`, ADVICE],
  ['a host that only begins alike', `${HOST}.evil.example/v1`, ADVICE],
  ['a host that only ends alike', 'https://evilapi.service.example/v1', ADVICE],
  ['a host below the allowed one', 'https://x.api.service.example/v1', ADVICE],
  ['a user that looks like the host', `${HOST}@evil.example/v1`, ADVICE],
  ['a file', 'file:///etc/passwd', ADVICE],
  ['data', 'data:application/json,{}', ADVICE],
  ['a blob of the same origin', `blob:${HOST}/v1/contacts`, 'names a blob: address'],
  ['a backslash trick', 'https://evil.example\\@api.service.example/', ADVICE],
  ['a host of ten thousand characters', `https://${'evil.'.repeat(2_000)}example/v1`, ADVICE],
  ['http, where the API is https', 'http://api.service.example/v1/contacts', 'X-Forwarded-Proto'],
  ['a name and a password', 'https://user:secret@api.service.example/v1', 'a user in it'],
  ['a name alone', 'https://user@api.service.example/v1', 'a user in it'],
  ['a password alone', 'https://:secret@api.service.example/v1', 'a user in it'],
  ['a path', '/v1/contacts?page_token=x', 'no address'],
  ['a path without a scheme', '//api.service.example/v1/contacts', 'no address'],
  ['no address', 'next please', 'no address'],
  ['a tab between dots', `${HOST}/v1/.\t./admin`, 'no address'],
  ['a line break between dots', `${HOST}/v1/.\r\n./admin`, 'no address'],
  ['a tab within an escape', `${HOST}/v1/%2\te%2e/admin`, 'no address'],
  ['a tab behind dots', `${HOST}/v1/..\t`, 'no address'],
  ['a space behind dots', `${HOST}/v1/.. `, 'no address'],
  ['a zero byte behind dots', `${HOST}/v1/..\0`, 'no address'],
  ['a megabyte', `${HOST}/v1/${'x'.repeat(1_000_000)}`, 'no address'],
])('the token does not go to %s', (_what, next, reason) => {
  const { remedy, message } = refusal(next);
  expect(remedy).toBe('give_up');
  expect(message).toContain(reason);
  expect(message.includes('SERVICE_NEXT_ORIGINS')).toBe(reason === ADVICE || next.startsWith('blob:'));
  expect(message).not.toMatch(/page_token|secret|null/);
  expect(message.length).toBeLessThan(400);
});

test.each([
  '/v1/../admin',
  '/v1/contacts/..',
  '/v1/./contacts',
  '/v1/%2e%2e/admin',
  '/v1/.%2E/admin',
  '/v1/..%2fadmin',
  '/v1%2f..%2fadmin',
  '/v1/..%5cadmin',
  '/v1/..\\admin',
  '/v1\\..\\admin',
  '/v1/%252e%252e/admin',
  '/v1/%25252e./admin',
  '/v1%252f..',
  '/v1/..?page_token=x',
  '/v1/contacts/..#x',
  ...[';/', '%3b', '%20', '%09', '%00', '%23', '%3f', '%253b'].map((cut) => `/v1/..${cut}/admin`),
])('the token does not go out of the path by %s', (path) => {
  const { remedy, message } = refusal(HOST + path);
  expect(remedy).toBe('give_up');
  expect(message).toContain('by way of ..');
});

test('a star stands for exactly one leading label', () => {
  const origins = new AllowedOrigins(HOST, ['https://*.pages.example']);
  expect(origins.check('https://acme-1.pages.example/x').url.host).toBe('acme-1.pages.example');
  for (const next of [
    'https://pages.example/x',
    'https://.pages.example/x',
    'https://a.b.pages.example/x',
    'https://acme.pagesXexample/x',
    'https://acme-pages.example/x',
    'https://acme.pages.example.evil.example/x',
    'https://acme.pages.example:8443/x',
    'http://acme.pages.example/x',
    'https://evil.example/.pages.example',
    'https://evil.example?.pages.example',
  ]) {
    expect(refusal(next, origins).remedy).toBe('give_up');
  }
});

/** Follows numbered pages, and says behind which one the chain failed. */
function walk(lead: (page: number) => number | null) {
  const chain = new PageChain();
  let page: number | null = 0;
  for (let pages = 0; page !== null; pages++) {
    const next: number | null = lead(page);
    try {
      chain.follow(`/${page}`, next === null ? null : `/${next}`);
    } catch (error) {
      if (error instanceof ServiceError) return { pages, remedy: error.remedy, message: error.message };
      throw error;
    }
    page = next;
  }
  return undefined;
}

test('a chain that ends passes, however long', () => {
  expect(walk((page) => (page === 5_000 ? null : page + 1))).toBeUndefined();
});

test('a page that names itself is worth another try', () => {
  expect(walk((page) => (page === 6 ? 6 : page + 1))).toMatchObject({ pages: 6, remedy: 'wait' });
});

test.each([
  [0, 2],
  [0, 50],
  [1, 2],
  [3, 7],
  [100, 3],
  [1_000, 64],
  [7, 1_025],
])('behind %d pages, a circle of %d is noticed soon', (before, length) => {
  const noticed = walk((page) => (page === before + length - 1 ? before : page + 1));
  expect(noticed).toMatchObject({ remedy: 'give_up', message: expect.stringContaining('circle') });
  expect(noticed?.pages).toBeGreaterThanOrEqual(before + length - 1);
  expect(noticed?.pages).toBeLessThanOrEqual(2 * before + 3 * length);
});

test('a chain without an end is given up on after a million pages', () => {
  const noticed = walk((page) => page + 1);
  expect(noticed).toMatchObject({ pages: 999_999, remedy: 'give_up' });
  expect(noticed?.message).toContain('1000000 pages');
});
