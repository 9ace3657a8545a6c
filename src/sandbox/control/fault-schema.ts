import { validateHeaderName, validateHeaderValue } from 'node:http';
import { z } from 'zod';
import { recordSchema } from './record-schema.ts';

const DELAY_MAX_MS = 10 * 60_000;
const TIMES_MAX = 1_000_000;
/** Set by the sandbox to fit the body that it sends. */
const OWN_HEADERS = new Set(['content-length', 'transfer-encoding']);

function isHeader(name: string, value: string): boolean {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return !OWN_HEADERS.has(name.toLowerCase());
  } catch {
    return false;
  }
}

const headers = z
  .record(z.string(), z.union([z.string(), z.number().transform(String), z.null()]))
  .refine(
    (fields) => Object.entries(fields).every(([name, value]) => isHeader(name, value ?? '')),
    'must be HTTP fields, without content-length and transfer-encoding',
  )
  .transform((fields) =>
    Object.fromEntries(Object.entries(fields).map(([name, value]) => [name.toLowerCase(), value])),
  );

/** Body of `POST /_sandbox/faults`. */
export const faultSchema = z.strictObject({
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
      records: recordSchema.optional(),
    })
    .refine(
      (fault) => Object.values(fault).some((value) => value !== undefined),
      'needs at least one thing that goes wrong',
    )
    .refine(
      ({ drop, revoke, records }) => drop !== 'before' || (revoke === undefined && records === undefined),
      'cannot revoke or change records: with drop "before" the request takes no effect',
    ),
  times: z.int().min(1).max(TIMES_MAX).default(1),
});
