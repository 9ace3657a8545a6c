import { WINDOW_MS } from './limits.ts';

/** How many requests a guard lets through in which time. */
export interface GuardRule {
  /** The value of `x-service-tier` on every answer of a guarded route. */
  tier: string;
  /** Requests in a window; a share of the caller's rate limit, rounded down, where `share` is true. */
  limit: number;
  share?: true;
  /** Milliseconds. */
  windowMs: number;
}

/**
 * The additional rate guards (Limits, "Additional rate guards"). Tier and limit of `analytics` and `resource` run
 * together in the published table ("11 req / 3s", "25 req / 1s"): read here as tier 1 with one request in 3 seconds and
 * tier 2 with five in a second. Both can be configured, as the reading may be wrong.
 */
export const GUARDS = {
  analytics: { tier: '1', limit: 1, windowMs: 3_000 },
  resource: { tier: '2', limit: 5, windowMs: 1_000 },
  search: { tier: 'search', limit: 0.4, share: true, windowMs: WINDOW_MS },
  'message-seen': { tier: 'message-seen', limit: 10, windowMs: 60 * 60_000 },
  'dynamic-object': { tier: 'dynamic-object', limit: 60, windowMs: 60_000 },
} as const satisfies Record<string, GuardRule>;

/** Name of a guard. */
export type GuardName = keyof typeof GUARDS;

/** The limits that the sandbox enforces: the table above, or other values for the two open guards. */
export type GuardRules = Readonly<Record<GuardName, GuardRule>>;

/** The guard's limit in requests a window. @param rateLimit the caller's own limit, for a guard that is a share of it */
export function guardLimit(rule: GuardRule, rateLimit: number): number {
  return rule.share ? Math.floor(rule.limit * rateLimit) : rule.limit;
}

/** A part of a guard's grouping key that is not a placeholder of the path. */
export type GroupPart =
  | 'account'
  | 'event'
  | 'channel type'
  | 'recipients'
  | 'conversation reference'
  | 'external conversation';

/** How a route is guarded: requests with the same bucket count together. */
export interface GuardUse {
  guard: GuardName;
  /** Routes with the same pool share their buckets; without one each route has its own. */
  pool?: string;
  /** Placeholders of the path (`:channel_id`) and parts of the body that the key is made of; none for a global guard. */
  by: readonly (`:${string}` | GroupPart)[];
}

type Fields = Readonly<Record<string, unknown>>;

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

function text(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function recipients(body: Fields): string {
  const all = [body.to, body.cc, body.bcc].flat().map((one) => text(one).trim().toLowerCase());
  return [...new Set(all.filter((one) => one !== ''))].toSorted().join(' ');
}

function event({ type, object }: Fields): string {
  if (object === undefined || object === null) return text(type);
  const { type: objectType, id } = fields(object);
  const named = typeof object === 'object' ? [text(objectType), text(id)] : [text(object)];
  // As JSON, so that no blank in one part makes it look like two.
  return JSON.stringify([text(type), ...named]);
}

/** The values of a grouping key's parts. The members of the bodies are our choice: the specification shows none. */
const PARTS: Record<GroupPart, (body: Fields) => string> = {
  // Without an id it is the account that the request makes, which no other request means.
  account: (body) => text(body.account_id) || crypto.randomUUID(),
  event,
  'channel type': (body) => text(body.type),
  recipients,
  'conversation reference': ({ metadata, sender }) =>
    text(fields(metadata).thread_ref) || text(fields(sender).handle).trim().toLowerCase(),
  // Without a reference the conversation is that of whom the message is from, or goes to.
  'external conversation': (body) =>
    text(fields(body.metadata).external_conversation_id) ||
    text(fields(body.sender).handle).trim().toLowerCase() ||
    recipients(body),
};

/**
 * The bucket that a request counts in, as text that is the same for requests that count together (Limits, "Per-resource
 * guards, additional grouping key").
 *
 * @param route `METHOD /path` with placeholders
 */
export function guardBucket(
  use: GuardUse,
  route: string,
  params: Readonly<Record<string, string>>,
  body: unknown,
): string {
  const pool = use.by.length === 0 ? use.guard : (use.pool ?? route);
  const values = use.by.map((part) =>
    part.startsWith(':') ? (params[part.slice(1)] ?? '') : PARTS[part as GroupPart](fields(body)),
  );
  return JSON.stringify([pool, ...values]);
}
