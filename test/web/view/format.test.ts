import { describe, expect, it } from 'vitest';
import {
  formatAgo,
  formatAhead,
  formatCount,
  formatDuration,
  formatInstant,
  listOf,
} from '../../../src/web/view/format.ts';
import { at, NOW } from '../status-fixtures.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

describe('formatting', () => {
  it.each([
    [0, '0 s'],
    [1, '1 s'],
    [59_000, '59 s'],
    [MINUTE_MS, '1 min'],
    [3 * MINUTE_MS + 20_000, '3 min 20 s'],
    [42 * MINUTE_MS + 20_000, '42 min'],
    [2 * HOUR_MS + 5 * MINUTE_MS, '2 h 5 min'],
    [179 * 24 * HOUR_MS, '179 days'],
    [-5, '0 s'],
  ])('says %d ms as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  it('says moments in UTC, and a dash for none or for nonsense', () => {
    expect(formatInstant('2025-06-10T23:05:00+02:00')).toBe('10 Jun 2025, 21:05 UTC');
    expect(formatInstant(null)).toBe('–');
    expect(formatInstant('soon')).toBe('–');
  });

  it('looks ahead and back', () => {
    expect(formatAhead(at(12_000), NOW)).toBe('in 12 s');
    expect(formatAhead(at(-12_000), NOW)).toBe('any moment');
    expect(formatAhead(null, NOW)).toBe('');
    expect(formatAgo(at(-5 * MINUTE_MS), NOW)).toBe('5 min ago');
    expect(formatAgo(at(0), NOW)).toBe('just now');
  });

  it('counts and lists', () => {
    expect(formatCount(1, 'page')).toBe('1 page');
    expect(formatCount(1_000_000, 'record')).toBe('1,000,000 records');
    expect(listOf(['Contacts'])).toBe('contacts');
    expect(listOf(['Tags', 'Contacts', 'Links'])).toBe('tags, contacts and links');
  });
});
