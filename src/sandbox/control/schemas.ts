import { validateHeaderName, validateHeaderValue } from 'node:http';
import { z } from 'zod';
import { DEFAULT_PLAN, PLAN_LIMITS, type Plan } from '../../contract/limits.ts';
import { OAUTH_SCOPES, SCOPE, type Scope } from '../../contract/scopes.ts';
import { CLOCK_MAX_MS } from '../clock.ts';
import { chosenId, LITERAL, recordsOf } from '../data/literals.ts';
import { isIntrospectionUrl } from '../outgoing.ts';
import type * as Types from '../types.ts';

const DAY_MS = 24 * 60 * 60_000;
const DELAY_MAX_MS = 10 * 60_000;
const RECORDS_CHANGED_MAX = 10_000;
const TIMES_MAX = 1_000_000;
/** Addresses that would run in the page that redirects to them. */
const SCRIPT_SCHEMES = new Set(['javascript:', 'data:', 'vbscript:', 'blob:', 'file:']);
/** Set by the sandbox to fit the body that it sends. */
const OWN_HEADERS = new Set(['content-length', 'transfer-encoding']);

const PLANS = Object.keys(PLAN_LIMITS) as [Plan, ...Plan[]];
const SCOPES = Object.values(SCOPE) as [Scope, ...Scope[]];

const name = z.string().trim().min(1).max(200);
const someText = z.string().min(1);
const wholeNumber = z.string().regex(/^\d{1,15}$/, 'must be a whole number');
const ascii = z.string().regex(/^[\x20-\x7e]{1,500}$/, 'must be printable ASCII');
const asciiWord = z.string().regex(/^[\x21-\x7e]{1,500}$/, 'must be printable ASCII without blanks');
const anyObject = z.custom<Readonly<Record<string, unknown>>>(
  (value) => typeof value === 'object' && value !== null,
  'must be an object',
);
const count = (min: number, max: number) => z.int().min(min).max(max);

const isAnyGiven = (members: object) => Object.values(members).some((value) => value !== undefined);

const apiToken = z.strictObject({ token: asciiWord.optional(), scopes: z.array(z.enum(SCOPES)).min(1) });

const { contacts, conversations, ...few } = LITERAL;
const given = Object.entries(few).map(([resource, record]) => [resource, z.array(record).optional()]);

const company = z
  .strictObject({
    ...(Object.fromEntries(given) as Record<
      keyof typeof few,
      z.ZodOptional<z.ZodArray<z.ZodType<Types.LiteralRecord, Types.LiteralRecord>>>
    >),
    id: chosenId.optional(),
    name,
    plan: z.enum(PLANS),
    addon_rpm: count(0, 100_000).optional(),
    contacts: recordsOf(contacts).optional(),
    conversations: recordsOf(conversations).optional(),
    order: z.enum(['activity', 'created']).optional(),
    // As many as anyone needs to try every combination of scopes.
    api_tokens: z.array(apiToken).max(20).optional(),
  })
  .refine((spec) => !spec.addon_rpm || spec.plan !== DEFAULT_PLAN, {
    path: ['addon_rpm'],
    error: 'needs the professional plan or higher',
  })
  .refine((spec) => spec.teammates?.some((one) => one.is_admin === true) !== false, {
    path: ['teammates'],
    error: 'need one with is_admin: true',
  })
  .refine((spec) => spec.inboxes?.some((one) => one.is_private !== true) !== false, {
    path: ['inboxes'],
    error: 'need one that is not private',
  })
  .refine((spec) => !spec.messages?.length || typeof spec.conversations === 'object', {
    path: ['messages'],
    error: 'need the conversations that they belong to, as a list',
  });

// A Location header holds printable ASCII alone.
function isRedirectUri(text: string): boolean {
  if (!URL.canParse(text) || !/^[\x21-\x7e]+$/.test(text) || text.includes('#')) return false;
  return !SCRIPT_SCHEMES.has(new URL(text).protocol);
}

const redirectUri = z
  .string()
  .refine(isRedirectUri, 'must be an absolute URL in ASCII, without blanks and without a fragment');
const introspectionUrl = z
  .string()
  .refine(
    isIntrospectionUrl,
    'must be an http address of this machine (localhost, 127.0.0.1, [::1]), without credentials and fragment',
  );
const oauthScope = z.enum(
  OAUTH_SCOPES,
  `must be ${OAUTH_SCOPES.join(' or ')}: OAuth tokens reach nothing else`,
);

const application = z.strictObject({
  name,
  redirect_uris: z.array(redirectUri).min(1).max(50),
  kind: z.enum(['partner', 'automation', 'tool-protocol']).default('partner'),
  scopes: z
    .array(oauthScope)
    .min(1)
    .transform((scopes) => [...new Set(scopes)])
    .default([SCOPE.shared]),
  introspection_url: introspectionUrl.optional(),
  expires_at: z.enum(['string', 'number', 'iso']).optional(),
  client_id: z
    .string()
    .regex(/^[\x21-\x39\x3b-\x7e]{1,200}$/, 'must be printable ASCII without blanks and colons')
    .optional(),
  client_secret: ascii.optional(),
});

const isoDate = z.union([z.iso.datetime({ offset: true }), z.iso.date()]);
const moment = z.union([count(0, CLOCK_MAX_MS), isoDate.transform((text) => Date.parse(text))], {
  error: 'must be milliseconds since 1970 or an ISO 8601 date',
});

const clock = z
  .strictObject({
    advance_ms: z.int().min(0).optional(),
    set: moment.optional(),
    frozen: z.boolean().optional(),
  })
  .refine(isAnyGiven, 'needs advance_ms, set or frozen');

const guard = z.strictObject({
  // It goes into a header.
  tier: asciiWord.max(100),
  requests: count(1, 1_000_000),
  per_ms: count(1, DAY_MS),
  paths: z.array(z.string().regex(/^\//, 'must be a path below {base_url}')).min(1).max(100).optional(),
});

const created = count(0, RECORDS_CHANGED_MAX);
const changed = z.union([created, z.array(someText).max(RECORDS_CHANGED_MAX)], {
  error: `must be a number up to ${RECORDS_CHANGED_MAX}, or a list of so many ids`,
});

/** Ids, or records with the members that change; {@link records} checks these by the resource. */
const valued = z.union(
  [created, z.array(z.union([someText, z.looseObject({ id: someText })])).max(RECORDS_CHANGED_MAX)],
  { error: `must be a number up to ${RECORDS_CHANGED_MAX}, or a list of so many ids or records` },
);

const records = z
  .strictObject({
    resource: z.enum(['contacts', 'conversations']),
    create: created.optional(),
    delete: changed.optional(),
    change: valued.optional(),
    reorder: z.boolean().optional(),
  })
  .refine(({ resource: _, ...changes }) => isAnyGiven(changes), 'needs create, delete, change or reorder')
  .superRefine(({ resource, change }, { addIssue }) => {
    for (const [at, record] of (typeof change === 'object' ? change : []).entries()) {
      const { error } = typeof record === 'string' ? {} : LITERAL[resource].safeParse(record);
      for (const { path, message } of error?.issues ?? []) {
        addIssue({ code: 'custom', path: ['change', at, ...path], message });
      }
    }
  });

function isHeader([field, value]: [string, string | null]): boolean {
  try {
    validateHeaderName(field);
    validateHeaderValue(field, value ?? '');
    return !OWN_HEADERS.has(field.toLowerCase());
  } catch {
    return false;
  }
}

const headers = z
  .record(z.string(), z.union([z.string(), z.number().transform(String), z.null()]))
  .refine(
    (fields) => Object.entries(fields).every(isHeader),
    'must be HTTP fields, without content-length and transfer-encoding',
  )
  .transform((fields) =>
    Object.fromEntries(Object.entries(fields).map(([field, value]) => [field.toLowerCase(), value])),
  );

const match = z.strictObject({
  method: someText.optional(),
  path: z.string().startsWith('/').optional(),
  company_id: someText.optional(),
  client_id: someText.optional(),
  nth: count(1, TIMES_MAX).optional(),
});

const effects = z
  .strictObject({
    status: count(200, 599).optional(),
    body: z.unknown().optional(),
    headers: headers.optional(),
    delay_ms: count(0, DELAY_MAX_MS).optional(),
    drop: z.enum(['before', 'after']).optional(),
    truncate: z.int().min(0).optional(),
    drip: z.strictObject({ bytes: z.int().min(1), every_ms: count(0, DELAY_MAX_MS) }).optional(),
    revoke: z.enum(['access_token', 'grant']).optional(),
    records: records.optional(),
  })
  .refine(isAnyGiven, 'needs at least one thing that goes wrong')
  .refine(
    ({ drop, ...effect }) =>
      drop !== 'before' || (effect.revoke === undefined && effect.records === undefined),
    'cannot revoke or change records: with drop "before" the request takes no effect',
  );

const fault = z.strictObject({
  match: match.default({}),
  fault: effects,
  times: count(1, TIMES_MAX).default(1),
});

const after = wholeNumber.transform(Number).prefault('0');

/** What the control interface takes: the shapes of `types.ts`, with their bounds. */
export const SCHEMA = {
  company,
  application,
  clock,
  fault,
  records,
  guard,
  /** A consent without a browser; `teammate_id` may be a company's id: then its first administrator consents. */
  consent: z.strictObject({
    client_id: someText.optional(),
    teammate_id: someText.optional(),
    redirect_uri: someText.optional(),
    state: z.string().optional(),
  }),
  file: z.strictObject({ file: someText }),
  restore: z.strictObject({ id: someText }),
  nothing: z.strictObject({}),
  /** A query that is not read. */
  ignored: z.object({}),
  /** The query of a list: only rows with a number above this one. */
  after: z.object({ after }),
  /** The same of requests, see {@link Types.RequestFilter}. */
  requests: z.object({
    after,
    limit: wholeNumber.transform(Number).optional(),
    method: someText.optional(),
    path: someText.optional(),
    details: z.enum(['true', 'false']).optional(),
  }),
  received: z.strictObject({
    method: someText.optional(),
    path: z.string().startsWith('/').optional(),
    query: anyObject.optional(),
    headers: anyObject.optional(),
    body: z.unknown().optional(),
    status: count(0, 599).optional(),
    times: count(1, TIMES_MAX).optional(),
  }),
} satisfies Record<string, z.ZodType> & {
  company: z.ZodType<unknown, Types.CompanySpec>;
  application: z.ZodType<unknown, Types.ApplicationSpec>;
  clock: z.ZodType<unknown, Types.ClockMove>;
  fault: z.ZodType<Types.FaultOrder, Types.FaultOrder>;
  records: z.ZodType<unknown, Types.RecordChanges>;
  guard: z.ZodType<unknown, Types.GuardSpec>;
};
