import { section } from './rule.ts';

/** The rate limits and what tells of them. */
export const LIMIT_RULES = [
  ...section('Limits: standard rate limit', [
    {
      id: 'plan starter',
      rule: 'Starter: 50 requests a minute.',
      source: 'specified',
      cases: ['sandbox/limits › an API token has the limit of the plan: starter + 0'],
    },
    {
      id: 'plan professional',
      rule: 'Professional: 100 requests a minute.',
      source: 'specified',
      cases: ['sandbox/limits › an API token has the limit of the plan: professional + 0'],
    },
    {
      id: 'plan enterprise',
      rule: 'Enterprise: 200 requests a minute.',
      source: 'specified',
      cases: ['sandbox/limits › an API token has the limit of the plan: enterprise + 0'],
    },
    {
      id: 'per company',
      rule: 'The limit is the company’s, not the token’s.',
      source: 'specified',
      cases: ['sandbox/limits › both API tokens of a company share its limit'],
    },
    {
      id: 'default 50',
      rule: 'The least that a company has is 50 requests a minute.',
      source: 'specified',
      cases: ['sandbox/bearer › /me without a token is a 401 with the five headers'],
    },
    {
      id: 'add-on',
      rule: 'From the Professional plan on an add-on raises the limit.',
      source: 'specified',
      cases: [
        'sandbox/limits › an API token has the limit of the plan: professional + 25',
        'sandbox/limits › a starter company cannot buy an increase',
      ],
    },
  ]),
  ...section('Limits: other rate limits', [
    {
      id: 'partner limit',
      rule: 'A partner’s requests by OAuth have 120 a minute, per company.',
      source: 'specified',
      cases: ['sandbox/limits › partner applications share 120 a company, beside its own limit'],
    },
    {
      id: 'partner apart',
      rule: 'They do not count against the customer’s own limit.',
      source: 'specified',
      cases: ['sandbox/limits › partner applications share 120 a company, beside its own limit'],
    },
    {
      id: 'automation exception',
      rule: 'The automation platform is the exception: it counts against the customer’s own limit.',
      source: 'specified',
      cases: ['sandbox/limits › an automation application counts against the company’s own limit'],
    },
    {
      id: 'calls to servers',
      rule: 'The service calls the servers that are configured for authorization at most 600 times a minute.',
      source: 'specified',
      cases: ['sandbox/introspection › an application’s server is called 600 times a minute, and no more'],
    },
  ]),
  ...section('Limits: burst allowance', [
    {
      id: 'burst half',
      rule: 'Once the limit is used up there is half of it on top, add-ons included.',
      source: 'specified',
      cases: ['sandbox/limits › an API token has the limit of the plan: professional + 25'],
    },
    {
      id: 'burst replenished',
      rule: 'A burst that is used up is full again after ten minutes.',
      source: 'specified',
      cases: ['sandbox/limits › the burst is full again ten windows after its first request'],
    },
  ]),
  ...section('Limits: response headers', [
    {
      id: 'headers everywhere',
      rule: 'All five stand on every answer of the API.',
      source: 'specified',
      cases: [
        'sandbox/bearer › 404 and 405 carry the five headers, and count',
        'sandbox/openapi › an answer is refused in which a rate header is missing',
      ],
    },
    {
      id: 'header limit',
      rule: 'x-ratelimit-limit: the most requests of a window.',
      source: 'specified',
      cases: ['sandbox/limits › an API token has the limit of the plan: starter + 0'],
    },
    {
      id: 'header remaining',
      rule: 'x-ratelimit-remaining: what is left in the window.',
      source: 'specified',
      cases: ['sandbox/limits › an API token has the limit of the plan: starter + 0'],
    },
    {
      id: 'header reset',
      rule: 'x-ratelimit-reset: when that is full again, never more than a minute ahead.',
      source: 'specified',
      cases: [
        'sandbox/limits › a window starts with its first request, and ends to the millisecond',
        'sandbox/limits › a clock that is set back leaves no reset further ahead than a window',
      ],
    },
    {
      id: 'header burst limit',
      rule: 'x-ratelimit-burst-limit: the burst allowance.',
      source: 'specified',
      cases: ['sandbox/limits › an API token has the limit of the plan: starter + 0'],
    },
    {
      id: 'header burst remaining',
      rule: 'x-ratelimit-burst-remaining: what is left of it, for ten minutes from the first burst request.',
      source: 'specified',
      cases: ['sandbox/limits › the burst is full again ten windows after its first request'],
    },
  ]),
  ...section('Limits: token lifetimes', [
    {
      id: 'lifetimes',
      rule: 'An access token lives 60 minutes, a refresh token six months.',
      source: 'specified',
      cases: [
        'sandbox/token-lifecycle › an access token lives 60 minutes',
        'sandbox/token-lifecycle › six months are calendar months in UTC',
      ],
    },
  ]),
  ...section('Versioning', [
    {
      id: 'additions',
      rule: 'The additions that are listed are there: canned answers, child tags, a teammate’s inboxes, times of tags, is_blocked, is_draft, error_type and message_uid.',
      source: 'specified',
      cases: ['sandbox/rules-service › what the specification lists as added is there'],
    },
  ]),
];
