import { z } from 'zod';
import { DEFAULT_PLAN, PLAN_LIMITS, type Plan } from '../../contract/limits.ts';
import { OAUTH_SCOPES, SCOPE, type Scope } from '../../contract/scopes.ts';
import { CLOCK_MAX_MS } from '../clock.ts';
import { chosenId, literalContact, literalConversation, recordsOf } from '../data/literals.ts';
import { Problem } from '../http/answer.ts';
import { isIntrospectionUrl } from '../outgoing.ts';
import { faultSchema } from './fault-schema.ts';
import { recordSchema } from './record-schema.ts';

const ADDON_MAX_RPM = 100_000;
const GUARD_MAX_MS = 24 * 60 * 60_000;
/** Addresses that would run in the page that redirects to them. */
const SCRIPT_SCHEMES = new Set(['javascript:', 'data:', 'vbscript:', 'blob:', 'file:']);

/** As many as anyone needs to try every combination of scopes. */
const API_TOKENS_MAX = 20;

const PLANS = Object.keys(PLAN_LIMITS) as [Plan, ...Plan[]];
const SCOPES = Object.values(SCOPE) as [Scope, ...Scope[]];

const name = z.string().trim().min(1).max(200);

const tokenValue = z.string().regex(/^[\x21-\x7e]{1,500}$/, 'must be printable ASCII without blanks');

const company = z
  .strictObject({
    id: chosenId.optional(),
    name,
    plan: z.enum(PLANS),
    addon_rpm: z.int().min(0).max(ADDON_MAX_RPM).optional(),
    contacts: recordsOf(literalContact).optional(),
    conversations: recordsOf(literalConversation).optional(),
    api_tokens: z
      .array(z.strictObject({ token: tokenValue.optional(), scopes: z.array(z.enum(SCOPES)).min(1) }))
      .max(API_TOKENS_MAX)
      .optional(),
  })
  .refine((spec) => !spec.addon_rpm || spec.plan !== DEFAULT_PLAN, {
    path: ['addon_rpm'],
    error: 'needs the professional plan or higher',
  });

// What a Location header can hold is printable ASCII.
function isRedirectUri(text: string): boolean {
  if (!URL.canParse(text) || !/^[\x21-\x7e]+$/.test(text) || text.includes('#')) return false;
  return !SCRIPT_SCHEMES.has(new URL(text).protocol);
}

const application = z.strictObject({
  name,
  redirect_uris: z
    .array(
      z
        .string()
        .refine(isRedirectUri, 'must be an absolute URL in ASCII, without blanks and without a fragment'),
    )
    .min(1)
    .max(50),
  kind: z.enum(['partner', 'automation', 'tool-protocol']).default('partner'),
  scopes: z
    .array(z.enum(OAUTH_SCOPES, `must be ${OAUTH_SCOPES.join(' or ')}: OAuth tokens reach nothing else`))
    .min(1)
    .transform((scopes) => [...new Set(scopes)])
    .default([SCOPE.shared]),
  introspection_url: z
    .string()
    .refine(
      isIntrospectionUrl,
      'must be an http address of this machine (localhost, 127.0.0.1, [::1]), without credentials and fragment',
    )
    .optional(),
  client_id: z
    .string()
    .regex(/^[\x21-\x39\x3b-\x7e]{1,200}$/, 'must be printable ASCII without blanks and colons')
    .optional(),
  client_secret: z
    .string()
    .regex(/^[\x20-\x7e]{1,500}$/, 'must be printable ASCII')
    .optional(),
});

const moment = z.union(
  [
    z.int().min(0).max(CLOCK_MAX_MS),
    z.union([z.iso.datetime({ offset: true }), z.iso.date()]).transform((text) => Date.parse(text)),
  ],
  { error: 'must be milliseconds since 1970 or an ISO 8601 date' },
);

const clock = z
  .strictObject({
    advance_ms: z.int().min(0).optional(),
    set: moment.optional(),
    frozen: z.boolean().optional(),
  })
  .refine(
    (move) => Object.values(move).some((value) => value !== undefined),
    'needs advance_ms, set or frozen',
  );

const guard = z.strictObject({
  // It goes into a header.
  tier: z.string().regex(/^[\x21-\x7e]{1,100}$/, 'must be printable ASCII without blanks'),
  requests: z.int().min(1).max(1_000_000),
  per_ms: z.int().min(1).max(GUARD_MAX_MS),
  paths: z.array(z.string().regex(/^\//, 'must be a path below {base_url}')).min(1).max(100).optional(),
});

const restore = z.strictObject({ id: z.string().min(1) });

const nothing = z.strictObject({});

/** What the control interface takes, call by call. */
export const SCHEMA = {
  company,
  application,
  clock,
  fault: faultSchema,
  records: recordSchema,
  guard,
  restore,
  nothing,
};

/** Checks a body. Throws a {@link Problem} (400) that says what is wrong where. */
export function check<T>(schema: z.ZodType<T>, body: unknown): T {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const issues = result.error.issues.map(({ path, message }) =>
    path.length > 0 ? `${path.join('.')}: ${message}` : message,
  );
  throw new Problem(400, issues.join('; '));
}
