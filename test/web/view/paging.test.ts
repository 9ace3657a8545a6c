import { describe, expect, it } from 'vitest';
import { listAddress, readListQuery, recordAddress } from '../../../src/web/view/paging.ts';

describe('paging', () => {
  it.each([
    [{}, '', 1],
    [{ q: ' zoë ', page: '3' }, 'zoë', 3],
    [{ q: 'x'.repeat(5_000) }, 'x'.repeat(200), 1],
    [{ page: '0' }, '', 1],
    [{ page: '-1' }, '', 1],
    [{ page: '1e3' }, '', 1],
    [{ page: '9'.repeat(400) }, '', 1],
    [{ page: '9999999' }, '', 1_000_000],
    [{ q: ['a', 'b'], page: ['1', '2'] }, '', 1],
  ])('reads %j', (query, search, page) => {
    expect(readListQuery(query)).toEqual({ search, page });
  });

  it('writes addresses that it reads again', () => {
    expect(listAddress('/a', { search: '', page: 1 })).toBe('/a');
    const address = listAddress('/a', { search: 'a&b=ü', page: 2 });
    const query = Object.fromEntries(new URL(address, 'http://x').searchParams);
    expect(readListQuery(query)).toEqual({ search: 'a&b=ü', page: 2 });
  });

  it.each([
    ['crd_1', '/a/crd_1'],
    ['a.b-c~d_e', '/a/a.b-c~d_e'],
    ['.', '/a?record=.'],
    ['..', '/a?record=..'],
    ['...', '/a/...'],
    ['?record=.', '/a?record=%3Frecord%3D.'],
    ['a/b', '/a?record=a%2Fb'],
    ['50%', '/a?record=50%25'],
    ['a%2Fb', '/a?record=a%252Fb'],
    ['Zoë', '/a?record=Zo%C3%AB'],
  ])('leads to record %j behind a proxy that decodes paths', (id, address) => {
    expect(recordAddress('/a', id)).toBe(address);
  });
});
