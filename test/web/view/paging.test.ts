import { describe, expect, it } from 'vitest';
import { listAddress, readListQuery, recordAddress } from '../../../src/web/view/paging.ts';

describe('paging', () => {
  it.each([
    [{}, { search: '', page: 1 }],
    [
      { q: ' zoë ', page: '3' },
      { search: 'zoë', page: 3 },
    ],
    [{ page: '0' }, { search: '', page: 1 }],
    [{ page: '-1' }, { search: '', page: 1 }],
    [{ page: '1e3' }, { search: '', page: 1 }],
    [{ page: '9'.repeat(400) }, { search: '', page: 1 }],
    [{ page: '9999999' }, { search: '', page: 1_000_000 }],
    [
      { q: ['a', 'b'], page: ['1', '2'] },
      { search: '', page: 1 },
    ],
  ])('reads %j', (query, expected) => {
    expect(readListQuery(query)).toEqual(expected);
  });

  it('bounds the search', () => {
    expect(readListQuery({ q: 'x'.repeat(5_000) }).search).toHaveLength(200);
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
    ['..', '/a?record=..'],
    ['a/b', '/a?record=a%2Fb'],
    ['50%', '/a?record=50%25'],
    ['a%2Fb', '/a?record=a%252Fb'],
    ['Zoë', '/a?record=Zo%C3%AB'],
  ])('leads to record %j behind a proxy that decodes paths', (id, address) => {
    expect(recordAddress('/a', id)).toBe(address);
  });
});
