import { validateHeaderName, validateHeaderValue } from 'node:http';
import { z } from 'zod';
import { DEFAULT_PLAN, PLAN_LIMITS, type Plan } from '../../contract/limits.ts';
import { OAUTH_SCOPES, SCOPE, type Scope } from '../../contract/scopes.ts';
import { CLOCK_MAX_MS } from '../clock.ts';
import { chosenId, literalContact, literalConversation, recordsOf } from '../data/literals.ts';
import { isIntrospectionUrl } from '../outgoing.ts';
import { CHANGEABLE } from '../state/change-records.ts';
import type {
  ApplicationSpec,
  ClockMove,
  CompanySpec,
  FaultOrder,
  GuardSpec,
  RecordChanges,
} from '../types.ts';

const RECORDS_CHANGED_MAX = 10_000;
const ADDON_MAX_RPM = 100_000;
const GUARD_MAX_MS = 24 * 60 * 60_000;
const DELAY_MAX_MS = 10 * 60_000;
const TIMES_MAX = 1_000_000;
/** Addresses that would run in the page that redirects to them. */
const SCRIPT_SCHEMES = new Set(['javascript:', 'data:', 'vbscript:', 'blob:', 'file:']);
/** As many as anyone needs to try every combination of scopes. */
const API_TOKENS_MAX = 20;
/** Set by the sandbox to fit the body that it sends. */
const OWN_HEADERS = new Set(['content-length', 'transfer-encoding']);

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

// A Location header holds printable ASCII alone.
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

const isAnyGiven = (members: object) => Object.values(members).some((value) => value !== undefined);

const clock = z
  .strictObject({
    advance_ms: z.int().min(0).optional(),
    set: moment.optional(),
    frozen: z.boolean().optional(),
  })
  .refine(isAnyGiven, 'needs advance_ms, set or frozen');

const guard = z.strictObject({
  // It goes into a header.
  tier: z.string().regex(/^[\x21-\x7e]{1,100}$/, 'must be printable ASCII without blanks'),
  requests: z.int().min(1).max(1_000_000),
  per_ms: z.int().min(1).max(GUARD_MAX_MS),
  paths: z.array(z.string().regex(/^\//, 'must be a path below {base_url}')).min(1).max(100).optional(),
});

const changed = z.int().min(0).max(RECORDS_CHANGED_MAX).optional();

const records = z
  .strictObject({
    resource: z.enum(CHANGEABLE),
    create: changed,
    delete: changed,
    change: changed,
    reorder: z.boolean().optional(),
  })
  .refine(({ resource: _, ...changes }) => isAnyGiven(changes), 'needs create, delete, change or reorder');

function isHeader(field: string, value: string): boolean {
  try {
    validateHeaderName(field);
    validateHeaderValue(field, value);
    return !OWN_HEADERS.has(field.toLowerCase());
  } catch {
    return false;
  }
}

const headers = z
  .record(z.string(), z.union([z.string(), z.number().transform(String), z.null()]))
  .refine(
    (fields) => Object.entries(fields).every(([field, value]) => isHeader(field, value ?? '')),
    'must be HTTP fields, without content-length and transfer-encoding',
  )
  .transform((fields) =>
    Object.fromEntries(Object.entries(fields).map(([field, value]) => [field.toLowerCase(), value])),
  );

const fault = z.strictObject({
  match: z
    .strictObject({
      method: z.string().min(1).optional(),
      path: z.string().startsWith('/').optional(),
      company_id: z.string().min(1).optional(),
      client_id: z.string().min(1).optional(),
      nth: z.int().min(1).max(TIMES_MAX).optional(),
    })
    .default({}),
  fault: z
    .strictObject({
      status: z.int().min(200).max(599).optional(),
      body: z.unknown().optional(),
      headers: headers.optional(),
      delay_ms: z.int().min(0).max(DELAY_MAX_MS).optional(),
      drop: z.enum(['before', 'after']).optional(),
      truncate: z.int().min(0).optional(),
      drip: z.strictObject({ bytes: z.int().min(1), every_ms: z.int().min(0).max(DELAY_MAX_MS) }).optional(),
      revoke: z.enum(['access_token', 'grant']).optional(),
      records: records.optional(),
    })
    .refine(isAnyGiven, 'needs at least one thing that goes wrong')
    .refine(
      (given) => given.drop !== 'before' || (given.revoke === undefined && given.records === undefined),
      'cannot revoke or change records: with drop "before" the request takes no effect',
    ),
  times: z.int().min(1).max(TIMES_MAX).default(1),
});

const nothing = z.strictObject({});
/** A query that is not read. */
const ignored = z.object({});
const restore = z.strictObject({ id: z.string().min(1) });
/** The query of a list: only rows with a number above this one. */
const after = z.object({
  after: z
    .string()
    .regex(/^\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .prefault('0'),
});

/** What the control interface takes: shapes of `types.ts`, with their bounds. */
export const SCHEMA = {
  company,
  application,
  clock,
  fault,
  records,
  guard,
  restore,
  nothing,
  ignored,
  after,
} satisfies Record<string, z.ZodType> & {
  company: z.ZodType<unknown, CompanySpec>;
  application: z.ZodType<unknown, ApplicationSpec>;
  clock: z.ZodType<ClockMove, ClockMove>;
  fault: z.ZodType<FaultOrder, FaultOrder>;
  records: z.ZodType<RecordChanges, RecordChanges>;
  guard: z.ZodType<GuardSpec, GuardSpec>;
};
