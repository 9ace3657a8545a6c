import { describe, expect, it } from 'vitest';
import { formatJson } from '../../../src/web/view/format-json.ts';

describe('formatJson', () => {
  it('sets a document out as JSON.stringify would', () => {
    const value = { a: 1, b: [true, null, 'x, {"y"}: ['], c: {}, d: [], e: [[{ f: '\\' }]], g: '"' };
    expect(formatJson(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
    expect(formatJson(JSON.stringify(value, null, 7))).toBe(JSON.stringify(value, null, 2));
  });

  it('keeps numbers, escapes and the order of names as they came', () => {
    const text = '{"2":12345678901234567890,"1":1.0,"1":1e2,"u":"\\u00e9\\/"}';
    expect(formatJson(text).replace(/\n\s*|(?<=:) /g, '')).toBe(text);
  });

  it.each(['', '"', '"\\', '{', ']]]', '{"a', 'plain words'])('copes with %j, which is no JSON', (text) => {
    expect(formatJson(text).replace(/\s/g, '')).toBe(text.replace(/\s/g, ''));
  });

  it('stays small for a document nested deeply', () => {
    const depth = 20_000;
    expect(formatJson('['.repeat(depth) + ']'.repeat(depth)).length).toBeLessThan(depth * 200);
  });
});
