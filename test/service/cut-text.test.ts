import { expect, test } from 'vitest';
import { cutText } from '../../src/service/cut-text.ts';

test.each([
  ['short enough', 'short enough'],
  ['exactly 20 letters..', 'exactly 20 letters..'],
  ['a text with a token-in-the-middle', 'a text with a …'],
  ['{"a":1,"token":"at_0123456789"}', '{"a":1,"token":"…'],
  ['at_0123456789012345678901234567890', '…'],
  ['%61%74%5f%30%31%32%33%34%35', '…'],
  ['&#97;&#116;&#95;&#48;&#49;&#50;', '…'],
])('a long text is cut off where a word ends: %s', (text, cut) => {
  expect(cutText(text, 20)).toBe(cut);
});
