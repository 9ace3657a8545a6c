import { expect, test } from 'vitest';
import { ServiceError } from '../../src/service/errors.ts';
import { AllowedOrigins, PageChain } from '../../src/service/next-url.ts';

const API = 'https://api.service.example/v1';

function refusal(origins: AllowedOrigins, next: string): ServiceError {
  try {
    origins.check(next);
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error(`${next} was let through`);
}

test.each([
  'https://api.service.example/v1/contacts?limit=100&page_token=a%2Fb%3D%3D',
  'https://api.service.example:443/v1/contacts',
  'https://API.service.example/elsewhere',
])('the origin of the API: %s', (next) => {
  const { url } = new AllowedOrigins(API).check(next);
  expect(url.href).toBe(new URL(next).href);
});

test.each([
  '?b=2&a=%7e%2B+x&page_token=AbC==',
  "?page_token='a%27b'",
  "?page_token=~!$&'()*+,;=:@/?-._%2f%2F[]|{}^`\\",
  '?',
])(
  'what is asked for is the address as given: order, case, signs and escapes of its query stay: %s',
  (query) => {
    const next = `https://api.service.example/v1/contacts${query}`;
    expect(new AllowedOrigins(API).check(next).target).toBe(`/v1/contacts${query}`);
    expect(new AllowedOrigins(API).check(`${next}#part`).target).toBe(`/v1/contacts${query}`);
  },
);

test.each([
  ['', ''],
  ['?a=b c', '?a=b%20c'],
  ['?a="<b>"', '?a=%22%3Cb%3E%22'],
  ['?a=ü', '?a=%C3%BC'],
])('what cannot be sent is written as addresses have it: %j', (query, sent) => {
  const { target } = new AllowedOrigins(API).check(`https://api.service.example/v1/contacts${query}`);
  expect(target).toBe(`/v1/contacts${sent}`);
});

test.each([
  ['another host', 'https://evil.example/v1/contacts'],
  ['another port', 'https://api.service.example:8443/v1/contacts'],
  ['a host that only begins like it', 'https://api.service.example.evil.example/v1'],
  ['a host that only ends like it', 'https://evilapi.service.example/v1'],
  ['a host below it', 'https://x.api.service.example/v1'],
  ['a name that looks like the host', 'https://api.service.example@evil.example/v1'],
  ['a file', 'file:///etc/passwd'],
  ['data', 'data:application/json,{}'],
  ['a blob of the same origin', 'blob:https://api.service.example/v1/contacts'],
  ['a backslash trick', 'https://evil.example\\@api.service.example/'],
  ['a host of ten thousand characters', `https://${'evil.'.repeat(2_000)}example/v1`],
])('the token does not go to %s', (what, next) => {
  const error = refusal(new AllowedOrigins(API), next);
  expect(error.remedy).toBe('give_up');
  expect(error.message).toContain('SERVICE_NEXT_ORIGINS. If the service has moved');
  expect(error.message).not.toContain('page_token');
  expect(error.message).not.toContain('null');
  expect(error.message.length).toBeLessThan(400);
  // Whoever reads it would add the origin that is allowed already.
  if (what.startsWith('a blob')) expect(error.message).toContain('a blob: address');
});

test.each([
  ['a name and a password', 'https://user:secret@api.service.example/v1', 'a user in it'],
  ['a name alone', 'https://user@api.service.example/v1', 'a user in it'],
  ['a password alone', 'https://:secret@api.service.example/v1', 'a user in it'],
  ['a path', '/v1/contacts?page_token=x', 'no address'],
  ['a path without a scheme', '//api.service.example/v1/contacts', 'no address'],
  ['nothing like an address', 'next please', 'no address'],
  ['a tab between dots', 'https://api.service.example/v1/.\t./admin', 'no address'],
  ['a line break between dots', 'https://api.service.example/v1/.\r\n./admin', 'no address'],
  ['a tab within an escape', 'https://api.service.example/v1/%2\te%2e/admin', 'no address'],
  ['a tab behind dots', 'https://api.service.example/v1/..\t', 'no address'],
  ['a space behind dots', 'https://api.service.example/v1/.. ', 'no address'],
  ['a zero behind dots', 'https://api.service.example/v1/..\0', 'no address'],
  ['a tab in the query', 'https://api.service.example/v1/contacts?page_token=\tx', 'no address'],
  ['a megabyte', `https://api.service.example/v1/${'x'.repeat(1_000_000)}`, 'no address'],
])('nor to %s, which no setting allows', (_what, next, reason) => {
  const error = refusal(new AllowedOrigins(API), next);
  expect(error.remedy).toBe('give_up');
  expect(error.message).toContain(reason);
  expect(error.message).not.toContain('SERVICE_NEXT_ORIGINS');
  expect(error.message).not.toContain('page_token');
  expect(error.message).not.toContain('secret');
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
])('nor out of the path that it seems to have: %s', (path) => {
  const error = refusal(new AllowedOrigins(API), `https://api.service.example${path}`);
  expect(error.remedy).toBe('give_up');
  expect(error.message).toContain('by way of ..');
});

test.each([
  '/v1/contacts?page_token=..%2F..',
  '/v1/contacts?after=/../x',
  '/v1/a..b/.well-known/x..',
  '/v1/...',
  '/v1/contacts;page=..;x',
  '/v1/a%20../contacts',
])('dots that lead nowhere are no harm: %s', (path) => {
  const next = `https://api.service.example${path}`;
  expect(new AllowedOrigins(API).check(next).url.href).toBe(next);
});

test('of http where the service is https: the advice is the operator’s, not a setting', () => {
  const error = refusal(new AllowedOrigins(API), 'http://api.service.example/v1/contacts?page_token=x');
  expect(error).toMatchObject({ kind: 'bad_answer', remedy: 'give_up' });
  expect(error.message).toContain('X-Forwarded-Proto');
  expect(error.message).not.toMatch(/SERVICE_NEXT_ORIGINS|page_token/);
});

test('a star stands for one leading label, no more and no less', () => {
  const origins = new AllowedOrigins(API, ['https://*.pages.example']);
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
    expect(refusal(origins, next).remedy).toBe('give_up');
  }
});

/** Follows a chain of numbered pages to its end. */
function walk(lead: (page: number) => number | null, most = Number.POSITIVE_INFINITY) {
  const chain = new PageChain();
  let page: number | null = 0;
  for (let pages = 0; page !== null; pages++) {
    if (pages === most) return { pages };
    const next: number | null = lead(page);
    try {
      chain.follow(`/${page}`, next === null ? null : `/${next}`);
    } catch (error) {
      if (error instanceof ServiceError) return { pages, error };
      throw error;
    }
    page = next;
  }
  return { pages: 0 };
}

test('a chain that ends is let through, however long', () => {
  expect(walk((page) => (page === 5_000 ? null : page + 1))).toEqual({ pages: 0 });
});

test('a page that names itself may be better when it is asked for again', () => {
  const { pages, error } = walk((page) => (page === 6 ? 6 : page + 1));
  expect(pages).toBe(6);
  expect(error).toMatchObject({ remedy: 'wait' });
});

test.each([
  [0, 2],
  [0, 50],
  [1, 2],
  [3, 7],
  [100, 3],
  [1_000, 64],
  [7, 1_025],
])('behind %d pages, a circle of %d is noticed before long', (before, length) => {
  const lead = (page: number) => (page === before + length - 1 ? before : page + 1);
  const { pages, error } = walk(lead, 100_000);
  expect(error).toMatchObject({ remedy: 'give_up' });
  expect(error?.message).toContain('circle');
  expect(pages).toBeGreaterThanOrEqual(before + length - 1);
  expect(pages).toBeLessThanOrEqual(2 * before + 3 * length);
});

test('a chain without an end is followed to the last page that any company may have', () => {
  const { pages, error } = walk((page) => page + 1);
  expect(pages).toBe(999_999);
  expect(error).toMatchObject({ remedy: 'give_up' });
  expect(error?.message).toContain('1000000 pages');
});
