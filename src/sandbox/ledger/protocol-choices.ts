import { section } from './rule.ts';

const LIMITS = 'contract/guards › are those of the table, in requests and milliseconds';

/** Where the specification is silent about tokens, limits, pages and errors, and how the sandbox reads it. */
export const PROTOCOL_CHOICES = [
  ...section('Our choices', [
    {
      id: 'choice token body',
      rule: 'The token route takes a form or JSON.',
      source: 'choice',
      cases: [
        'sandbox/token › the body may be JSON',
        'sandbox/token › a body of text/plain like grant_type=refresh_token&refresh_token=x is an invalid_request',
      ],
    },
    {
      id: 'choice expires_at',
      rule: 'expires_at is text, with seconds since 1970.',
      source: 'choice',
      cases: ['sandbox/token › a code gives exactly the four members of the specification'],
    },
    {
      id: 'choice months',
      rule: 'Six months are calendar months in UTC.',
      source: 'choice',
      cases: ['contract/lifetimes › months in UTC: from the last of a month to a shorter one'],
    },
    {
      id: 'choice token errors',
      rule: 'Errors of the token route are those of RFC 6749, section 5.2.',
      source: 'choice',
      cases: ['sandbox/token › an unknown code is an error of RFC 6749'],
    },
    {
      id: 'choice errors',
      rule: 'Errors of every other status have _error, too.',
      source: 'choice',
      cases: [
        'sandbox/rules-service › every answer of a route is JSON, as the description has it, be it good or an error',
      ],
    },
    {
      id: 'choice guards',
      rule: 'The two cells that run together are read as tier 1 with 1 request in 3 s and tier 2 with 5 in 1 s; both can be configured.',
      source: 'choice',
      cases: [
        LIMITS,
        'sandbox/analytics › with another reading of the guards’ table the analytics guard lets eleven requests through',
      ],
    },
    {
      id: 'choice partner burst',
      rule: 'The partner limit has a burst of half of it.',
      source: 'choice',
      cases: ['sandbox/limits › partner applications share 120 a company, beside its own limit'],
    },
    {
      id: 'choice window',
      rule: 'A window is fixed: it starts with its first request.',
      source: 'choice',
      cases: ['sandbox/limits › a window starts with its first request, and ends to the millisecond'],
    },
    {
      id: 'choice reset',
      rule: 'x-ratelimit-reset may have a fraction.',
      source: 'choice',
      cases: ['sandbox/limits › a window starts with its first request, and ends to the millisecond'],
    },
    {
      id: 'choice retry-after',
      rule: 'retry-after is in whole seconds, rounded up.',
      source: 'choice',
      cases: ['sandbox/limits › after limit and burst comes 429, which states the wait and consumes nothing'],
    },
    {
      id: 'choice unknown',
      rule: 'What is not there is 404, a wrong method 405, a body that is no JSON object 400, one that is wrong 422.',
      source: 'choice',
      cases: [
        'sandbox/tags › what is wrong is refused: an unknown tag, an unknown parent, a name that is none, no object',
        'sandbox/bearer › 404 and 405 carry the five headers, and count',
      ],
    },
    {
      id: 'choice limit over',
      rule: 'A limit over 100 is 400, not cut down.',
      source: 'choice',
      cases: ['sandbox/pagination › limit=101 is a 400'],
    },
    {
      id: 'choice page token',
      rule: 'A page token is good for its own company, list and limit, else 400.',
      source: 'choice',
      cases: [
        'sandbox/pagination-tokens › a page token is good for every token of its company, and for none of another',
        'sandbox/pagination-tokens › a page token of another list is a 400',
        'sandbox/pagination-tokens › a page token with another limit than its own is a 400',
      ],
    },
    {
      id: 'choice 401 counts nowhere',
      rule: 'An answer 401 or 429 counts for no limit; every other one does.',
      source: 'choice',
      cases: [
        'sandbox/bearer › an expired token gets 401, which counts nowhere',
        'sandbox/limits › after limit and burst comes 429, which states the wait and consumes nothing',
      ],
    },
    {
      id: 'choice reused code',
      rule: 'A code that is used twice ends the tokens that it gave.',
      source: 'choice',
      cases: [
        'sandbox/token › a code used twice gives nothing, and ends the tokens that it gave, and those alone',
      ],
    },
    {
      id: 'choice scopes',
      rule: 'The scopes are shared_resources, shared_resources:read, private_resources and knowledge_base; OAuth has the first two.',
      source: 'choice',
      cases: [
        'sandbox/scopes › an application cannot be set up for what OAuth tokens do not reach',
        'sandbox/scopes › an application that asked to read alone may read what is shared, and gets 403 for every change',
      ],
    },
    {
      id: 'choice guard counts',
      rule: 'A request that gets as far as its guard counts there, also when it is then refused.',
      source: 'choice',
      cases: [
        'sandbox/messaging-guards › a request that is refused for its body or its conversation counts for the guard too',
      ],
    },
    {
      id: 'choice guard order',
      rule: 'The main limit comes first: a request that it refuses counts for no guard, and names no tier.',
      source: 'choice',
      cases: ['sandbox/rules-guards › what the rate limit refuses counts for no guard, and names none'],
    },
    {
      id: 'choice guard company',
      rule: 'A guard is the company’s, whoever asks; that of search, a share of the rate limit, goes with the caller’s.',
      source: 'choice',
      cases: [
        'sandbox/guards-of-a-company › a guard is the company’s: its own tokens and a partner’s fill one bucket',
      ],
    },
    {
      id: 'choice external sender',
      rule: 'Without an external conversation reference, the guard counts by who the message is from, or goes to.',
      source: 'choice',
      cases: [
        'sandbox/guards-of-a-company › inbound messages without a conversation’s reference count by who sent them',
      ],
    },
    {
      id: 'choice message names',
      rule: 'A message has one bucket of the seen guard, by whichever of id and message_uid it is named.',
      source: 'choice',
      cases: ['sandbox/guards-of-a-company › a message is seen ten times an hour, by whichever of its names'],
    },
    {
      id: 'choice created while paging',
      rule: 'What is created while someone pages comes at the end; what is changed stays in its place.',
      source: 'choice',
      cases: [
        'sandbox/pagination-changes › contacts: a record that is created comes at the end, for who is still paging too',
        'sandbox/pagination-changes › contacts: a changed record shows what it is now, in its place',
      ],
    },
    {
      id: 'choice reordered while paging',
      rule: 'Page tokens stay valid when the order of a list changes, and the list ends.',
      source: 'choice',
      cases: [
        'sandbox/pagination-changes › contacts: in a list that is reordered, page tokens stay valid and the list ends',
      ],
    },
  ]),
] as const;
