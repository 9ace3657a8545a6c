import { section } from './rule.ts';

/** Who gets in, and how far. */
export const AUTHENTICATION_RULES = [
  ...section('Authentication', [
    {
      id: 'grant only code',
      rule: '1. The authorization code grant is the only one (beside the refresh that belongs to it).',
      source: 'specified',
      cases: ['sandbox/token › another grant_type is an error of RFC 6749'],
    },
    {
      id: 'client credentials',
      rule: '2. Each application has a client id and a secret of its own, which is shown to nobody else.',
      source: 'specified',
      cases: [
        'sandbox/control › an application gets credentials that work',
        'sandbox/journal › no secret gets in',
      ],
    },
    {
      id: 'administrator authorizes',
      rule: '3. Who authorizes an application must be an administrator.',
      source: 'specified',
      cases: [
        'sandbox/authorize › only an administrator may approve',
        'sandbox/tool-protocol › teammates who are no administrators authorize no application of another kind',
      ],
    },
    {
      id: 'tool protocol',
      rule: '3. An application of the tool protocol may be authorized by any teammate, and its tokens are that one’s.',
      source: 'specified',
      cases: [
        'sandbox/authorize › any teammate may approve a tool-protocol application',
        'sandbox/tool-protocol › a tool-protocol application’s token acts for the teammate who authorized it, and for that one alone',
      ],
    },
    {
      id: 'flow',
      rule: '4. Authorize, come back with code and state, exchange, call, refresh: each step works with what the one before gave.',
      source: 'specified',
      cases: [
        'sandbox/third-party › @badgateway/oauth2-client walks through the authorization, and its token opens the API',
      ],
    },
    {
      id: 'flow state',
      rule: '4. Who gets another state back than the one that was sent aborts: the app does.',
      source: 'specified',
      cases: ['acceptance/01-install-state › refuses a callback without a state, and one without anything'],
    },
    {
      id: 'basic at token route',
      rule: '5. The token route takes Basic with client id and secret joined by a colon, in Base64 as they are, and nothing else.',
      source: 'specified',
      cases: [
        'sandbox/token › the token route refuses form-encoded credentials',
        'sandbox/token › the secret may hold a colon: the first one parts',
      ],
    },
    {
      id: 'bearer at api',
      rule: '6. Every other request takes Bearer with the access token; Basic opens nothing there.',
      source: 'specified',
      cases: [
        'sandbox/bearer › neither Basic, nor a refresh token, nor an unknown one opens the API',
        'sandbox/bearer › /me without a token is a 401 with the five headers',
      ],
    },
    {
      id: 'access token lifetime',
      rule: '7. An access token lives 60 minutes; after that the answer is 401.',
      source: 'specified',
      cases: ['sandbox/token-lifecycle › an access token lives 60 minutes'],
    },
    {
      id: 'refresh token lifetime',
      rule: '8. A refresh token lives six months, in which a refresh answers the same one.',
      source: 'specified',
      cases: [
        'sandbox/token-lifecycle › the refresh token stays the same while it has more than 24 hours to live',
        'sandbox/token-lifecycle › six months are calendar months in UTC',
      ],
    },
    {
      id: 'refresh token rotation',
      rule: '8. In its last 24 hours a refresh answers a new one, which starts another six months.',
      source: 'specified',
      cases: ['sandbox/token-lifecycle › in its last 24 hours a new one starts another six months'],
    },
    {
      id: 'newest refresh token',
      rule: '8. The client keeps the newest refresh token and refreshes in time: the app does, in the last 24 hours.',
      source: 'specified',
      cases: [
        'acceptance/10-killed-refresh › has stored the new tokens when it first uses them',
        'auth/tokens › is rotated when it is due, and then due in half a year',
      ],
    },
    {
      id: 'reach shared',
      rule: '9. OAuth tokens reach what the teams of the company share.',
      source: 'specified',
      cases: [
        'sandbox/reach › of /tags, an OAuth token lists what is shared, an API token with the scope all',
        'sandbox/responses › OAuth tokens reach canned answers',
      ],
    },
    {
      id: 'reach private inboxes and tags',
      rule: '9. OAuth tokens do not reach a teammate’s own inboxes and tags.',
      source: 'specified',
      cases: [
        'sandbox/reach › one private thing of /inboxes is 403 for an OAuth token, and open to an API token',
      ],
    },
    {
      id: 'reach signatures',
      rule: '9. OAuth tokens do not reach signatures.',
      source: 'specified',
      cases: [
        'sandbox/reach › a teammate’s signature is shown to an API token with the scope, and to no OAuth token, and changed so',
      ],
    },
    {
      id: 'reach knowledge bases',
      rule: '9. OAuth tokens do not reach knowledge bases; API tokens with the scope do.',
      source: 'specified',
      cases: [
        'sandbox/reach › no knowledge base route is in reach of an OAuth token, nor of an API token without the scope',
      ],
    },
    {
      id: 'scopes set up',
      rule: '9. An application states its scopes when it is set up, and the customer agrees to them at installation.',
      source: 'specified',
      cases: [
        'sandbox/scopes › the consent page says in plain words what is asked for, and what stays out of reach',
        'sandbox/scopes › a grant keeps the scopes that were shown, whatever the authorization request says',
      ],
    },
    {
      id: 'introspection',
      rule: '10. A channel of an application may take its name and address from the external service, by token introspection.',
      source: 'specified',
      cases: ['sandbox/introspection › an external service gives a channel its name and address'],
    },
  ]),
];
