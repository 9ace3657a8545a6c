/** Names of the response headers of the specification, in lower case (Limits, "Response headers on every API response"). */
export const HEADER = {
  limit: 'x-ratelimit-limit',
  remaining: 'x-ratelimit-remaining',
  reset: 'x-ratelimit-reset',
  burstLimit: 'x-ratelimit-burst-limit',
  burstRemaining: 'x-ratelimit-burst-remaining',
  /** Only on guarded routes: names the guard. */
  tier: 'x-service-tier',
  retryAfter: 'retry-after',
} as const;
