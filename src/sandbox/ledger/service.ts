import { section } from './rule.ts';

/** What the service is, and what it consists of. */
export const SERVICE_RULES = [
  ...section('What the service does', [
    {
      id: 'json',
      rule: 'It is an HTTP API whose answers are JSON, errors included.',
      source: 'specified',
      cases: [
        'sandbox/rules-service › every answer of a route is JSON, as the description has it, be it good or an error',
        'sandbox/openapi › an answer is refused in which the body is no JSON',
      ],
    },
    {
      id: 'resources',
      rule: 'Each resource that is named has its routes: conversations, messages, contacts, tags and child tags, teammates, inboxes, channels, accounts, canned answers, knowledge bases and articles with locales, links, reports and exports, application events.',
      source: 'specified',
      cases: [
        'sandbox/rules-service › every route of the specification’s tables is served, under its own method and path',
      ],
    },
    {
      id: 'external access',
      rule: 'An external application gets access by the authorization code grant.',
      source: 'specified',
      cases: [
        'sandbox/third-party › @badgateway/oauth2-client walks through the authorization, and its token opens the API',
      ],
    },
    {
      id: 'instance authorizes',
      rule: 'Each customer instance authorizes an application for itself: the data that it then reads is of that instance alone.',
      source: 'specified',
      cases: ['sandbox/reach › no token reaches another company'],
    },
    {
      id: 'oauth or exception',
      rule: 'What integrates publicly uses OAuth; the only other way in is a token that the company made for itself.',
      source: 'specified',
      cases: ['sandbox/bearer › neither Basic, nor a refresh token, nor an unknown one opens the API'],
    },
  ]),
];
