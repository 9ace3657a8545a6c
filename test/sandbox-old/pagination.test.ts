import { expect, test } from 'vitest';
import type { ErrorBody } from '../../src/contract/errors.ts';
import { allPages, company, type Page, page } from '../sandbox/support/paging.ts';
import { at, type Company, startFrozen } from '../sandbox/support/test-sandbox.ts';

test.each(['contacts', 'conversations'])('%s: 50 a page by default, self as requested', async (list) => {
  const service = await startFrozen();
  const owner = await company(service, { [list]: 120 });
  const first = await page(service, `/${list}?unknown=a%20b`, owner);
  expect(first._results).toHaveLength(50);
  expect(first._links.self).toBe(`${service.sandbox.apiUrl}/${list}?unknown=a%20b`);
  expect(first._pagination.next).toMatch(`${service.sandbox.apiUrl}/${list}?`);
});

test('next carries the original limit, and the last page ends in null', async () => {
  const service = await startFrozen();
  const owner = await company(service, { contacts: 25 });
  const pages = await allPages(service, '/contacts?limit=10', owner);
  expect(pages.map(({ _results }) => _results.length)).toEqual([10, 10, 5]);
  for (const { _pagination } of pages.slice(0, 2)) {
    expect(new URL(_pagination.next ?? '').searchParams.get('limit')).toBe('10');
  }
  expect(at(pages, 1)._links.self).toBe(at(pages, 0)._pagination.next);
  expect(at(pages, 2)._pagination.next).toBeNull();
});

test('the page token alone carries the limit too', async () => {
  const service = await startFrozen();
  const owner = await company(service, { contacts: 25 });
  const { _pagination } = await page(service, '/contacts?limit=10', owner);
  const url = new URL(_pagination.next ?? '');
  url.searchParams.delete('limit');
  expect((await page(service, url.href, owner))._results).toHaveLength(10);
});

test('a list that fills its last page ends there; an empty one is a page with nothing', async () => {
  const service = await startFrozen();
  const full = await company(service, { contacts: 100, conversations: 0 });
  expect(await page(service, '/contacts?limit=100', full)).toMatchObject({ _pagination: { next: null } });
  expect(await page(service, '/conversations', full)).toMatchObject({
    _pagination: { next: null },
    _results: [],
  });
});

test('every record comes once, in the same order for every limit, though some pages are short', async () => {
  const service = await startFrozen();
  const owner = await company(service, { contacts: 3_000 });
  const inHundreds = await allPages(service, '/contacts?limit=100', owner);
  const inSevens = await allPages(service, '/contacts?limit=7', owner);
  const ids = inHundreds.flatMap(({ _results }) => _results.map(({ id }) => id));
  expect(new Set(ids).size).toBe(3_000);
  expect(inSevens.flatMap(({ _results }) => _results.map(({ id }) => id))).toEqual(ids);
  const short = inHundreds.slice(0, -1).filter(({ _results }) => _results.length < 100);
  expect(short.length).toBeGreaterThan(0);
  expect(short.every(({ _pagination }) => _pagination.next !== null)).toBe(true);
});

test('the companies at start have a few pages, some 40, and more than a window holds', async () => {
  const service = await startFrozen();
  const { companies } = await service.state();
  const pages: number[] = [];
  for (const owner of companies) {
    let count = 0;
    for (const list of ['/contacts', '/conversations'] as const) {
      const { access_token } = await service.install(owner);
      for (let url: string | null = `${list}?limit=100`; url !== null; count++) {
        const response = await service.api(url, access_token);
        if (response.status === 429) await service.advance(600_000);
        else url = ((await response.json()) as Page)._pagination.next;
      }
    }
    pages.push(count);
  }
  expect(pages[0]).toBeLessThan(6);
  expect(Math.abs(at(pages, 1) - 42)).toBeLessThan(5);
  expect(pages[2]).toBeGreaterThan(120);
  expect(companies.map(({ counts }) => counts.contacts + counts.conversations)).toEqual([300, 4_000, 15_500]);
});

test.each(['0', '-1', '101', '1.5', 'ten', '', '1e1', '99999999999999999999'])(
  'limit=%s is a 400',
  async (limit) => {
    const service = await startFrozen();
    const owner = await company(service);
    const response = await service.api(`/contacts?limit=${limit}`, at(owner.api_tokens, 0).token);
    expect(response.status).toBe(400);
    expect((await response.json()) as ErrorBody).toMatchObject({
      _error: { status: 400, title: 'Bad Request', message: expect.stringContaining('limit') },
    });
  },
);

test('a limit that is given twice, or that is not the page token’s, is a 400', async () => {
  const service = await startFrozen();
  const owner = await company(service);
  const { token } = at(owner.api_tokens, 0);
  expect((await service.api('/contacts?limit=5&limit=5', token)).status).toBe(400);
  const { _pagination } = await page(service, '/contacts?limit=5', owner);
  const other = (_pagination.next ?? '').replace('limit=5', 'limit=6');
  expect((await service.api(other, token)).status).toBe(400);
});

test('a page token is good for its own company and list, and only as it is', async () => {
  const service = await startFrozen();
  const owner = await company(service);
  const other = await company(service);
  const { _pagination } = await page(service, '/contacts', owner);
  const next = _pagination.next ?? '';
  const statusOf = async (url: string, who: Company) =>
    (await service.api(url, at(who.api_tokens, 0).token)).status;
  expect(await statusOf(next, owner)).toBe(200);
  expect(await statusOf(next, other)).toBe(400);
  expect(await statusOf(next.replace('/contacts', '/conversations'), owner)).toBe(400);
  expect(await statusOf(`${next}x`, owner)).toBe(400);
  expect(await statusOf(next.replace(/page_token=.{4}/, 'page_token=BBBB'), owner)).toBe(400);
  expect(await statusOf('/contacts?page_token=', owner)).toBe(400);
});

test.each(['contacts', 'conversations'] as const)(
  '%s: a record by its id is the one of the list',
  async (list) => {
    const service = await startFrozen();
    const owner = await company(service);
    const other = await company(service);
    const record = at((await page(service, `/${list}?limit=3`, owner))._results, 2);
    const single = await service.api(`/${list}/${record.id}`, at(owner.api_tokens, 0).token);
    expect(await single.json()).toEqual(record);
    expect((await service.api(`/${list}/${record.id}`, at(other.api_tokens, 0).token)).status).toBe(404);
    expect((await service.api(`/${list}/${record.id}x`, at(owner.api_tokens, 0).token)).status).toBe(404);
  },
);

test('links lead to where the client reached the service', async () => {
  const service = await startFrozen();
  const owner = await company(service);
  const url = service.sandbox.apiUrl.replace('127.0.0.1', 'localhost');
  const { _pagination, _links, _results } = await page(service, `${url}/contacts?limit=1`, owner);
  expect(_links.self).toBe(`${url}/contacts?limit=1`);
  expect(_pagination.next).toContain(`${url}/contacts?`);
  expect(at(_results, 0)).toMatchObject({ _links: { self: `${url}/contacts/${at(_results, 0).id}` } });
});
