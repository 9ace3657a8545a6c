import { section } from './rule.ts';

/** How lists come in pages. */
export const PAGINATION_RULES = [
  ...section('Endpoints: pagination', [
    {
      id: 'page limit',
      rule: 'The first call may name a limit, a whole number.',
      source: 'specified',
      cases: [
        'sandbox/pagination › next carries the original limit, and the last page ends in null',
        'sandbox/pagination › limit=101 is a 400',
      ],
    },
    {
      id: 'page token',
      rule: 'Later calls carry the page_token that stands in the next URL.',
      source: 'specified',
      cases: ['sandbox/pagination › the page token alone carries the limit too'],
    },
    {
      id: 'page next',
      rule: 'next is a full URL, or null at the end.',
      source: 'specified',
      cases: [
        'sandbox/pagination › next carries the original limit, and the last page ends in null',
        'sandbox/pagination › a list that fills its last page ends there; an empty one is a page with nothing',
      ],
    },
    {
      id: 'page next as given',
      rule: 'The next URL is called as it is: it carries the original limit.',
      source: 'specified',
      cases: [
        'sandbox/pagination › next carries the original limit, and the last page ends in null',
        'sandbox/third-party › got pages through a list by _pagination.next',
      ],
    },
    {
      id: 'page short',
      rule: 'A page may hold fewer results than the limit without being the last: only null ends the list.',
      source: 'specified',
      cases: [
        'sandbox/pagination-changes › contacts: a deleted record leaves a page short, and whoever pages misses nothing else',
        'sandbox/pagination › every record comes once, in the same order for every limit, though some pages are short',
      ],
    },
    {
      id: 'page self',
      rule: '_links.self is the URL of the page.',
      source: 'specified',
      cases: ['sandbox/pagination › contacts: 50 a page by default, self as requested'],
    },
  ]),
  ...section('Limits: pagination sizes', [
    {
      id: 'limit default',
      rule: 'Without a limit a page has up to 50 results.',
      source: 'specified',
      cases: ['sandbox/pagination › contacts: 50 a page by default, self as requested'],
    },
    {
      id: 'limit maximum',
      rule: 'A page has at most 100 results.',
      source: 'specified',
      cases: ['sandbox/pagination › limit=101 is a 400'],
    },
  ]),
];
