import { section } from './rule.ts';

/** The guards themselves; what each route’s guard does stands with the routes. */
export const GUARD_RULES = [
  ...section('Limits: additional rate guards', [
    {
      id: 'guard tier',
      rule: 'Every answer of a guarded route carries x-service-tier.',
      source: 'specified',
      cases: [
        'sandbox/rules-guards › x-service-tier stands on the answers of guarded routes, and on no other',
      ],
    },
    {
      id: 'guard analytics',
      rule: 'Analytics: reports and exports share one bucket.',
      source: 'specified',
      cases: [
        'contract/guards › analytics: global',
        'sandbox/analytics › reports and exports have one guard, which is global: one request in three seconds',
      ],
    },
    {
      id: 'guard search',
      rule: 'Search: 40 % of the rate limit, one bucket.',
      source: 'specified',
      cases: [
        'contract/guards › of search are 40% of the caller’s rate limit, rounded down',
        'sandbox/conversation-search › searches count together, whatever they look for: 40% of the rate limit',
      ],
    },
    {
      id: 'guard message seen',
      rule: 'Message seen: 10 requests a message and hour.',
      source: 'specified',
      cases: [
        'contract/guards › message seen: message',
        'sandbox/messaging-guards › a message is said to be seen ten times an hour; others have their own bucket',
      ],
    },
    {
      id: 'guard links',
      rule: 'App object links: 60 requests in 60 seconds, one bucket.',
      source: 'specified',
      cases: [
        'contract/guards › app object links: global',
        'sandbox/links › POST /links is guarded globally: 60 requests in 60 seconds, whatever they link to',
      ],
    },
    {
      id: 'guards nowhere else',
      rule: 'No other route has a guard.',
      source: 'specified',
      cases: ['contract/guards › no other route is guarded'],
    },
  ]),
  ...section('Limits: per-resource guards', [
    {
      id: 'key accounts',
      rule: 'Creating and changing accounts: per route and account_id.',
      source: 'specified',
      cases: [
        'contract/guards › POST /accounts: account_id',
        'contract/guards › PATCH /accounts/:account_id: account_id',
        'sandbox/accounts › PATCH /accounts/:account_id is guarded by account, apart from POST /accounts with that account_id',
      ],
    },
    {
      id: 'key events',
      rule: 'Events of applications: per type, and object.',
      source: 'specified',
      cases: [
        'contract/guards › POST /applications/:application_uid/events: event type (+ object)',
        'sandbox/applications › events are guarded by application, type and object',
      ],
    },
    {
      id: 'key channels',
      rule: 'Channels of an inbox: per inbox and type of channel.',
      source: 'specified',
      cases: [
        'contract/guards › POST /inboxes/:inbox_id/channels: channel type',
        'sandbox/messaging-guards › new channels count by inbox and type',
      ],
    },
    {
      id: 'key knowledge bases',
      rule: 'Knowledge bases: per route and kb_id.',
      source: 'specified',
      cases: [
        'sandbox/knowledge-bases › each route of a knowledge base has a guard of its own, whatever the locale',
      ],
    },
    {
      id: 'key articles',
      rule: 'Articles: per route and kba_id.',
      source: 'specified',
      cases: [
        'sandbox/knowledge-bases › each article has a guard of its own on each route, whatever the locale',
      ],
    },
    {
      id: 'key teammates',
      rule: 'Teammates: per teammate_id.',
      source: 'specified',
      cases: [
        'contract/guards › PATCH /teammates/:teammate_id: teammate_id',
        'sandbox/teammates › PATCH /teammates/:teammate_id is guarded by teammate',
      ],
    },
    {
      id: 'key channel messages',
      rule: 'Messages of a channel: per channel and recipients.',
      source: 'specified',
      cases: [
        'contract/guards › POST /channels/:channel_id/messages: channel_id + recipients',
        'sandbox/messaging-guards › messages in a channel count by channel and recipients, in any order and case',
      ],
    },
    {
      id: 'key replies',
      rule: 'Messages of a conversation: per conversation_id.',
      source: 'specified',
      cases: [
        'contract/guards › POST /conversations/:conversation_id/messages: conversation_id',
        'sandbox/messaging-guards › messages in a conversation count by conversation, whoever they go to',
      ],
    },
    {
      id: 'key incoming',
      rule: 'Incoming messages: per channel and the conversation reference that follows from the message.',
      source: 'specified',
      cases: [
        'contract/guards › POST /channels/:channel_id/incoming_messages: channel + derived conversation reference',
        'sandbox/messaging-guards › incoming messages count by channel and the reference of their conversation, or else their sender',
      ],
    },
    {
      id: 'key external',
      rule: 'Inbound, outbound and external messages: per route, channel and external conversation.',
      source: 'specified',
      cases: [
        'sandbox/messaging-guards › inbound, outbound and external messages count by channel and external conversation, each route apart',
      ],
    },
    {
      id: 'key imported',
      rule: 'Imported messages: per inbox and recipients.',
      source: 'specified',
      cases: [
        'contract/guards › POST /inboxes/:inbox_id/imported_messages: inbox_id + recipients',
        'sandbox/messaging-guards › imported messages count by inbox and recipients',
      ],
    },
    {
      id: 'key conversation changes',
      rule: 'Changes of a conversation, its assignee and its reminders: per conversation_id, shared by these routes.',
      source: 'specified',
      cases: [
        'contract/guards › changes of a conversation: conversation_id, shared across the routes',
        'sandbox/messaging-guards › changes, assignee and reminders of a conversation share its bucket; others have their own',
      ],
    },
    {
      id: 'key conversation tags',
      rule: 'Tags and links of a conversation, put on and taken off: per conversation_id, shared by these requests.',
      source: 'specified',
      cases: [
        'contract/guards › tags and links of a conversation: conversation_id, shared across the requests',
        'sandbox/messaging-guards › tags and links of a conversation share its bucket, put on or taken off; others have their own',
      ],
    },
  ]),
] as const;
