import { section } from './rule.ts';

/** The OAuth routes, parameter by parameter. */
export const OAUTH_RULES = [
  ...section('Endpoints: OAuth routes', [
    {
      id: 'authorize route',
      rule: 'GET {auth_url}/oauth/authorize starts an authorization in the browser.',
      source: 'specified',
      cases: ['sandbox/authorize › the consent page names the application, and everybody of every company'],
    },
    {
      id: 'token route',
      rule: 'POST {auth_url}/oauth/token exchanges a code, or refreshes; no other method does.',
      source: 'specified',
      cases: [
        'sandbox/token › a code gives exactly the four members of the specification',
        'sandbox/token › only POST',
      ],
    },
    {
      id: 'authorize response_type',
      rule: 'response_type must be there, and be code.',
      source: 'specified',
      cases: [
        'sandbox/authorize › response_type "token" is told to the application',
        'sandbox/authorize › a missing response_type is an invalid_request',
      ],
    },
    {
      id: 'authorize client_id',
      rule: 'client_id must be there, and be that of an application.',
      source: 'specified',
      cases: ['sandbox/authorize › an unknown client never redirects'],
    },
    {
      id: 'authorize redirect_uri',
      rule: 'redirect_uri must be there, and be an address of the application.',
      source: 'specified',
      cases: [
        'sandbox/authorize › an unregistered address never redirects',
        'sandbox/authorize › a repeated client_id or redirect_uri never redirects',
      ],
    },
    {
      id: 'authorize state',
      rule: 'state may be left out, and comes back unchanged.',
      source: 'specified',
      cases: [
        'sandbox/authorize › approval by an administrator leads back with a code and the state unchanged',
        'sandbox/authorize › no state comes back when none was sent, and the address keeps its own query',
      ],
    },
    {
      id: 'callback code',
      rule: 'On acceptance the browser comes back to redirect_uri with a code of short life.',
      source: 'specified',
      cases: [
        'sandbox/authorize › approval by an administrator leads back with a code and the state unchanged',
        'sandbox/token › a code lives ten minutes',
      ],
    },
    {
      id: 'exchange code',
      rule: 'The exchange needs the code of the callback, which is good once.',
      source: 'specified',
      cases: [
        'sandbox/token › no code is an error of RFC 6749',
        'sandbox/token › a code used twice gives nothing, and ends the tokens that it gave, and those alone',
      ],
    },
    {
      id: 'exchange redirect_uri',
      rule: 'The exchange needs the redirect_uri of the authorization, letter by letter.',
      source: 'specified',
      cases: ['sandbox/token › a code is bound to its application and its redirect_uri'],
    },
    {
      id: 'exchange grant_type',
      rule: 'grant_type must be authorization_code for an exchange and refresh_token for a refresh.',
      source: 'specified',
      cases: ['sandbox/token › no grant_type is an error of RFC 6749'],
    },
    {
      id: 'refresh refresh_token',
      rule: 'A refresh needs the refresh token of the last token response, from the application that it belongs to.',
      source: 'specified',
      cases: ['sandbox/token-lifecycle › a refresh token is of use to its own application alone'],
    },
    {
      id: 'token response',
      rule: 'The token response is 200 and JSON, with access_token, refresh_token, expires_at and token_type Bearer.',
      source: 'specified',
      cases: ['sandbox/token › a code gives exactly the four members of the specification'],
    },
  ]),
  ...section('Endpoints: creation of messages', [
    {
      id: 'message tags validated',
      rule: 'The tags that are asked for must be applicable to the inboxes of the message.',
      source: 'specified',
      cases: [
        'sandbox/drafts › a private tag is refused for messages of shared inboxes, with its id, and nothing is created',
        'sandbox/drafts › the tags of a reply must fit the inbox of its channel as well as that of the conversation',
      ],
    },
    {
      id: 'message answers draft',
      rule: 'The answer is the draft that is going to be sent.',
      source: 'specified',
      cases: [
        'sandbox/drafts › the answer is the draft that will be sent; a second later, to the millisecond, it has been',
      ],
    },
    {
      id: 'message async uid',
      rule: 'The asynchronous form answers message_uid.',
      source: 'specified',
      cases: [
        'sandbox/drafts › asked to respond-async, both routes answer 202 with the message_uid, which leads to the message',
      ],
    },
  ]),
];
