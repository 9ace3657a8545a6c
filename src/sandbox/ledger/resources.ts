import { section } from './rule.ts';

/** What documents carry, and which states they have. */
export const RESOURCE_RULES = [
  ...section('Resources: tag', [
    {
      id: 'tag created_at',
      rule: 'A tag tells when it was created.',
      source: 'specified',
      cases: ['sandbox/tags › a child tag is created, listed below its parent, and read back as it was sent'],
    },
    {
      id: 'tag updated_at',
      rule: 'A tag tells when it was last changed.',
      source: 'specified',
      cases: ['sandbox/tags › a tag moves to another parent, and to none; updated_at tells when'],
    },
    {
      id: 'tag children link',
      rule: 'A tag links to the list of its child tags.',
      source: 'specified',
      cases: ['sandbox/tags › a child tag is created, listed below its parent, and read back as it was sent'],
    },
    {
      id: 'tag parent',
      rule: 'PATCH gives a tag another parent.',
      source: 'specified',
      cases: ['sandbox/tags › a tag moves to another parent, and to none; updated_at tells when'],
    },
    {
      id: 'tag cycle',
      rule: 'A tag cannot come below itself.',
      source: 'choice',
      cases: [
        'sandbox/tags › a tag cannot be its own parent, nor one of its children’s child; nothing changes then',
      ],
    },
  ]),
  ...section('Resources: account', [
    {
      id: 'account is_blocked',
      rule: 'An account tells whether it is blocked.',
      source: 'specified',
      cases: ['sandbox/accounts › an account is changed, blocked and unblocked; updated_at tells when'],
    },
  ]),
  ...section('Resources: message', [
    {
      id: 'message is_draft',
      rule: 'A message tells a draft from what was sent or received.',
      source: 'specified',
      cases: [
        'sandbox/drafts › the answer is the draft that will be sent; a second later, to the millisecond, it has been',
        'sandbox/drafts › a message that came in is no draft',
      ],
    },
    {
      id: 'message error_type',
      rule: 'A draft that could not be sent tells which kind of error it was.',
      source: 'specified',
      cases: [
        'sandbox/drafts › a message to someone who cannot be reached stays a draft, and error_type says why',
      ],
    },
    {
      id: 'message message_uid',
      rule: 'The asynchronous creation of a message answers message_uid, and no conversation_reference.',
      source: 'specified',
      cases: [
        'sandbox/drafts › asked to respond-async, both routes answer 202 with the message_uid, which leads to the message',
        'sandbox/rules-service › what the specification lists as added is there',
      ],
    },
  ]),
  ...section('Resources: other resources', [
    {
      id: 'responses all',
      rule: 'The list of canned answers has all of them.',
      source: 'specified',
      cases: ['sandbox/responses › all canned answers are listed, and each is fetched alone'],
    },
    {
      id: 'teammate inboxes',
      rule: 'A teammate’s inboxes are those that the teammate can access.',
      source: 'specified',
      cases: [
        'sandbox/teammates › a teammate’s inboxes are the shared ones that it can access, and for a token that reaches it the own',
      ],
    },
    {
      id: 'locales',
      rule: 'Knowledge bases and articles have locales, each with contents of its own.',
      source: 'specified',
      cases: [
        'sandbox/knowledge-bases › with a locale that one is changed, and the default one stays as it was',
        'sandbox/knowledge-bases › an article’s content is changed in one locale, and stays in the other',
      ],
    },
  ]),
  ...section('Resources: common response members', [
    {
      id: 'member next',
      rule: 'A page has in _pagination.next the URL of the next one, or null at the end.',
      source: 'specified',
      cases: ['sandbox/pagination › next carries the original limit, and the last page ends in null'],
    },
    {
      id: 'member self',
      rule: 'A page has in _links.self its own URL.',
      source: 'specified',
      cases: ['sandbox/pagination › contacts: 50 a page by default, self as requested'],
    },
    {
      id: 'member error',
      rule: 'An error has _error with status, title and message.',
      source: 'specified',
      cases: [
        'sandbox/rules-service › every answer of a route is JSON, as the description has it, be it good or an error',
      ],
    },
  ]),
  ...section('States: message draft state', [
    {
      id: 'draft true',
      rule: 'A draft has is_draft true.',
      source: 'specified',
      cases: [
        'sandbox/drafts › the answer is the draft that will be sent; a second later, to the millisecond, it has been',
      ],
    },
    {
      id: 'draft false',
      rule: 'What was sent or received has is_draft false.',
      source: 'specified',
      cases: [
        'sandbox/drafts › the answer is the draft that will be sent; a second later, to the millisecond, it has been',
        'sandbox/drafts › a message that came in is no draft',
      ],
    },
    {
      id: 'draft error',
      rule: 'A draft that fails to send stays a draft, with error_type.',
      source: 'specified',
      cases: [
        'sandbox/drafts › a message to someone who cannot be reached stays a draft, and error_type says why',
      ],
    },
  ]),
  ...section('States: token lifecycle', [
    {
      id: 'state exchange',
      rule: 'A valid code with the right redirect_uri and credentials becomes an access token and a refresh token.',
      source: 'specified',
      cases: ['sandbox/token › a code gives exactly the four members of the specification'],
    },
    {
      id: 'state access expires',
      rule: 'After 60 minutes the access token has expired, and gets 401.',
      source: 'specified',
      cases: ['sandbox/token-lifecycle › an access token lives 60 minutes'],
    },
    {
      id: 'state refresh',
      rule: 'A refresh token that is valid gives a new access token, also after the earlier one has expired.',
      source: 'specified',
      cases: [
        'sandbox/token-lifecycle › a refresh gives a new access token; the earlier one lives to its own end',
        'sandbox/third-party › @badgateway/oauth2-client refreshes by itself once the API answers 401',
      ],
    },
    {
      id: 'state refresh unchanged',
      rule: 'With more than 24 hours left, a refresh answers the same refresh token.',
      source: 'specified',
      cases: [
        'sandbox/token-lifecycle › the refresh token stays the same while it has more than 24 hours to live',
      ],
    },
    {
      id: 'state refresh rotates',
      rule: 'Within the last 24 hours a refresh answers a new refresh token, with six months of its own.',
      source: 'specified',
      cases: ['sandbox/token-lifecycle › in its last 24 hours a new one starts another six months'],
    },
    {
      id: 'state refresh expires',
      rule: 'After six months without a rotation the refresh token has expired: only a new authorization helps.',
      source: 'specified',
      cases: [
        'sandbox/rules-service › a refresh token that was never renewed ends after six months, and a new authorization starts over',
      ],
    },
  ]),
];
