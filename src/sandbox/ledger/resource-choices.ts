import { section } from './rule.ts';

/** Where the specification is silent about resources and their fields, and what the sandbox takes. */
export const RESOURCE_CHOICES = [
  ...section('Our choices', [
    {
      id: 'choice async',
      rule: 'Prefer: respond-async asks for the asynchronous form: 202 with message_uid.',
      source: 'choice',
      cases: [
        'sandbox/drafts › asked to respond-async, both routes answer 202 with the message_uid, which leads to the message',
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
      id: 'choice analytics ready',
      rule: 'A report or export is ready some time after it was asked for.',
      source: 'choice',
      cases: [
        'sandbox/analytics › a report becomes ready by the service’s clock, to the millisecond, with its metrics',
        'sandbox/analytics › an export becomes ready, and then has the address of its file, which the same token opens',
      ],
    },
    {
      id: 'choice introspection',
      rule: 'A channel of an application is asked for at the application’s introspection address (RFC 7662) when it is created.',
      source: 'choice',
      cases: [
        'sandbox/introspection › when the external service says that the token is not active, it is 422, and there is no channel',
        'sandbox/introspection › nobody is asked about another type, without a token, or without an introspection address',
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
      id: 'choice fields',
      rule: 'Documents have realistic fields; what is sent is what is read back, members of one’s own included.',
      source: 'choice',
      cases: [
        'sandbox/tags › a child tag is created, listed below its parent, and read back as it was sent',
        'sandbox/accounts › an account is created, listed and read back as it was sent',
      ],
    },
    {
      id: 'choice times',
      rule: 'Times in documents are seconds since 1970, with a fraction.',
      source: 'choice',
      cases: ['sandbox/tags › a tag moves to another parent, and to none; updated_at tells when'],
    },
    {
      id: 'choice parent_tag_id',
      rule: 'parent_tag_id is the member that moves a tag.',
      source: 'choice',
      cases: ['sandbox/tags › a tag moves to another parent, and to none; updated_at tells when'],
    },
    {
      id: 'choice identity',
      rule: 'GET /me tells the company behind a token.',
      source: 'choice',
      cases: ['sandbox/bearer › GET /me tells the company behind the token'],
    },
    {
      id: 'choice results',
      rule: 'A list’s items stand in _results.',
      source: 'choice',
      cases: ['sandbox/pagination › contacts: 50 a page by default, self as requested'],
    },
  ]),
];
