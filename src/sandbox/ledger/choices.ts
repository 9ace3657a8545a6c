import { section } from './rule.ts';

const LIMITS = 'contract/guards › are those of the table, in requests and milliseconds';

/** Where the specification is silent, and how the sandbox reads it. */
export const CHOICE_RULES = [
  ...section('Our choices', [
    {
      id: 'choice results',
      rule: 'A list’s items stand in _results.',
      source: 'choice',
      cases: ['sandbox/pagination › %s: 50 a page by default, self as requested'],
    },
    {
      id: 'choice identity',
      rule: 'GET /me tells the company behind a token.',
      source: 'choice',
      cases: ['sandbox/bearer › GET /me tells the company behind the token'],
    },
    {
      id: 'choice token body',
      rule: 'The token route takes a form or JSON.',
      source: 'choice',
      cases: [
        'sandbox/token › the body may be JSON',
        'sandbox/token › a body of %s like %s is an invalid_request',
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
      cases: ['contract/lifetimes › months in UTC: %s'],
    },
    {
      id: 'choice token errors',
      rule: 'Errors of the token route are those of RFC 6749, section 5.2.',
      source: 'choice',
      cases: ['sandbox/token › %s is an error of RFC 6749'],
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
      id: 'choice async',
      rule: 'Prefer: respond-async asks for the asynchronous form: 202 with message_uid.',
      source: 'choice',
      cases: [
        'sandbox/drafts › asked to respond-async, both routes answer 202 with the message_uid, which leads to the message',
      ],
    },
    {
      id: 'choice parent_tag_id',
      rule: 'parent_tag_id is the member that moves a tag.',
      source: 'choice',
      cases: ['sandbox/tags › a tag moves to another parent, and to none; updated_at tells when'],
    },
    {
      id: 'choice fields',
      rule: 'Documents have realistic fields; what is sent is what is read back, members of one’s own included.',
      source: 'choice',
      cases: [
        'sandbox/tags › a child tag is created, listed below its parent, and read back as it was sent',
        'sandbox/accounts › an account is created, listed and read back as it was sent',
      ],
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
      cases: ['sandbox/pagination › limit=%s is a 400'],
    },
    {
      id: 'choice page token',
      rule: 'A page token is good for its own company, list and limit, else 400.',
      source: 'choice',
      cases: [
        'sandbox/pagination › a page token is good for its own company and list, and only as it is',
        'sandbox/pagination › a limit that is given twice, or that is not the page token’s, is a 400',
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
      id: 'choice signature',
      rule: 'A teammate’s signature is a member of the teammate, for tokens that reach private resources.',
      source: 'choice',
      cases: [
        'sandbox/teammates › a signature is read and changed with a token that reaches private resources, in lists too',
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
      id: 'choice introspection',
      rule: 'A channel of an application is asked for at the application’s introspection address (RFC 7662) when it is created.',
      source: 'choice',
      cases: [
        'sandbox/introspection › when the external service %s, it is 422, and there is no channel',
        'sandbox/introspection › nobody is asked about another type, without a token, or without an introspection address',
      ],
    },
    {
      id: 'choice analytics ready',
      rule: 'A report or export is ready some time after it was asked for.',
      source: 'choice',
      cases: [
        'sandbox/analytics › a report becomes ready by the service’s clock, to the millisecond, with its metrics',
        'sandbox/analytics › an export becomes ready, and then has the address of its file, which the same token opens',
      ],
    },
    {
      id: 'choice sent later',
      rule: 'A draft is sent a second after it was created.',
      source: 'choice',
      cases: [
        'sandbox/drafts › the answer is the draft that will be sent; a second later, to the millisecond, it has been',
      ],
    },
    {
      id: 'choice unreachable',
      rule: 'Addresses that end in .invalid cannot be reached: error_type is recipient_unreachable then.',
      source: 'choice',
      cases: [
        'sandbox/drafts › a message to someone who cannot be reached stays a draft, and error_type says why',
      ],
    },
    {
      id: 'choice private tags',
      rule: 'A private tag goes only with what is in an inbox of the same teammate.',
      source: 'choice',
      cases: [
        'sandbox/drafts › messages of a private inbox take its own teammate’s tags alone',
        'sandbox/conversation-tags-and-links › a private tag does not go onto a conversation in a shared inbox',
      ],
    },
    {
      id: 'choice search words',
      rule: 'A search finds the conversations in which all its words occur, in any case and order.',
      source: 'choice',
      cases: [
        'sandbox/conversation-search › all words must occur, in any case, order and place, also as parts of words',
      ],
    },
    {
      id: 'choice incoming reference',
      rule: 'The reference of an incoming message’s conversation is its thread_ref, or else its sender.',
      source: 'choice',
      cases: [
        'sandbox/outside-messages › incoming messages with the same thread_ref are one conversation; without one, those of the same sender are',
      ],
    },
    {
      id: 'choice external conversation',
      rule: 'Inbound, outbound and external messages know their conversation by the id that it has in the other system.',
      source: 'choice',
      cases: [
        'sandbox/outside-messages › inbound and outbound messages and the external PUT share a conversation by its id in the other system',
      ],
    },
    {
      id: 'choice message twice',
      rule: 'A message that is brought again under its id in the other system is not doubled.',
      source: 'choice',
      cases: [
        'sandbox/outside-messages › a message that is brought again under its id is not doubled, and not changed',
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
  ]),
] as const;
