import { HEADER } from '../../contract/headers.ts';

const whole = { type: 'integer', minimum: 0 };

/** Headers of answers, for use in all of them (Limits; Errors). */
export const HEADERS = {
  RateLimit: {
    description: 'The most requests that a window allows.',
    required: true,
    schema: whole,
  },
  RateLimitRemaining: {
    description: 'Requests that are left in this window.',
    required: true,
    schema: whole,
  },
  RateLimitReset: {
    description: 'When the window ends, in seconds since 1970, with a fraction; at most a minute ahead.',
    required: true,
    schema: { type: 'number', minimum: 0 },
  },
  RateLimitBurst: {
    description: 'The burst allowance: what may be asked on top of the limit.',
    required: true,
    schema: whole,
  },
  RateLimitBurstRemaining: {
    description: 'What is left of the burst allowance, for ten minutes from its first request.',
    required: true,
    schema: whole,
  },
  RetryAfter: {
    description: 'Seconds to wait before the next try.',
    required: true,
    schema: { type: 'number', minimum: 0 },
  },
  Authenticate: {
    description: 'How to authenticate, and what was wrong with the token.',
    required: true,
    schema: { type: 'string' },
  },
};

function header(name: keyof typeof HEADERS) {
  return { $ref: `#/components/headers/${name}` };
}

/** The five headers that every answer of the API has (Limits, "Response headers on every API response"). */
export const RATE_HEADERS = {
  [HEADER.limit]: header('RateLimit'),
  [HEADER.remaining]: header('RateLimitRemaining'),
  [HEADER.reset]: header('RateLimitReset'),
  [HEADER.burstLimit]: header('RateLimitBurst'),
  [HEADER.burstRemaining]: header('RateLimitBurstRemaining'),
};

/** What an answer has on top of the five, by its status. */
export const STATUS_HEADERS: Record<number, object> = {
  401: { 'www-authenticate': header('Authenticate') },
  429: { [HEADER.retryAfter]: header('RetryAfter') },
};

/** What tells that the answer is the asynchronous one that was asked for (RFC 7240). */
export const PREFERENCE_HEADER = {
  'preference-applied': {
    description: 'The answer is the asynchronous one.',
    required: true,
    schema: { type: 'string', const: 'respond-async' },
  },
};

/** `x-service-tier`, which names the guard of a route. @param required not on a refusal by the main limit */
export function tierHeader(tier: string, required: boolean) {
  return {
    [HEADER.tier]: {
      description: 'The guard of this route.',
      required,
      schema: { type: 'string', const: tier },
    },
  };
}
