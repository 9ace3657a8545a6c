import { formatAgo, formatAhead } from './format.ts';

/** A text that may name a moment, which an open page counts down or up to. */
export interface Sentence {
  before: string;
  moment: { at: string; mode: 'ahead' | 'ago'; text: string } | null;
  after: string;
}

/**
 * @param text with `{in}` where a coming moment is to stand, or `{ago}` for a past one
 * @param at the moment, ISO 8601; without it the text ends before its mark
 * @param now milliseconds since 1970
 */
export function sentence(text: string, at?: string | null, now = 0): Sentence {
  const [, before = text, mark, after = ''] = /^(.*?) ?\{(in|ago)\}(.*)$/s.exec(text) ?? [];
  if (mark === undefined || !at)
    return { before: mark === undefined ? text : before + after, moment: null, after: '' };
  const moment =
    mark === 'in'
      ? ({ at, mode: 'ahead', text: formatAhead(at, now) } as const)
      : ({ at, mode: 'ago', text: formatAgo(at, now) } as const);
  return { before: `${before} `, moment, after };
}
