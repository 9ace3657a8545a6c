import { section } from './rule.ts';

/** How errors look, and events: there is little said of these. */
export const ERROR_RULES = [
  ...section('Events', [
    {
      id: 'events guard',
      rule: 'Events of an application are guarded by type, and by object where there is one.',
      source: 'specified',
      cases: [
        'sandbox/applications › events are guarded by application, type and object',
        'sandbox/applications › events without an object are guarded by application and type',
      ],
    },
  ]),
  ...section('Errors', [
    {
      id: 'error expired',
      rule: 'An access token that has expired gets 401.',
      source: 'specified',
      cases: ['sandbox/bearer › an expired token gets 401, which counts nowhere'],
    },
    {
      id: 'error 429 body',
      rule: 'A limit that is exceeded gets 429 with _error, whose message states the wait in milliseconds.',
      source: 'specified',
      cases: ['sandbox/limits › after limit and burst comes 429, which states the wait and consumes nothing'],
    },
    {
      id: 'error retry-after',
      rule: '429 says in retry-after how many seconds to wait; who waits so long is let in.',
      source: 'specified',
      cases: ['sandbox/limits › a request that waits as long as it is told to is allowed'],
    },
    {
      id: 'error tier',
      rule: 'x-service-tier stands only on answers of guarded routes, and names the guard.',
      source: 'specified',
      cases: [
        'sandbox/rules-guards › x-service-tier stands on the answers of guarded routes, and on no other',
        'sandbox/openapi › an answer is refused in which a route without a guard names a tier',
      ],
    },
    {
      id: 'error guard 429',
      rule: 'A guard refuses with 429 and retry-after, though x-ratelimit-remaining is above 0.',
      source: 'specified',
      cases: [
        'sandbox/rules-guards › createLink is refused by its guard while there is plenty of the rate limit left',
      ],
    },
    {
      id: 'error guard independent',
      rule: 'Guards and the main limit count apart: what one refuses, the other has not counted.',
      source: 'specified',
      cases: ['sandbox/rules-guards › what a guard refuses does not count for the rate limit'],
    },
    {
      id: 'error same bucket',
      rule: 'While one bucket is full, other buckets of the same guard are open.',
      source: 'specified',
      cases: ['sandbox/rules-guards › a full bucket closes no other one'],
    },
    {
      id: 'client waits',
      rule: 'A client waits as long as retry-after says, and leaves that bucket alone meanwhile: ours does.',
      source: 'specified',
      cases: [
        'service/refusal › 429 waits as long as retry-after says, and names the guard',
        'service/service-client-guards › a guard that refuses is left alone for as long as it says, and no other route waits for it',
      ],
    },
  ]),
];
