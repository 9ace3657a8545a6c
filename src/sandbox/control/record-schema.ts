import { z } from 'zod';
import { CHANGEABLE } from '../state/change-records.ts';

const RECORDS_MAX = 10_000;

const count = z.int().min(0).max(RECORDS_MAX).optional();

/** Body of `POST /_sandbox/companies/:company_id/records`, and what a fault does to records. */
export const recordSchema = z
  .strictObject({
    resource: z.enum(CHANGEABLE),
    create: count,
    delete: count,
    change: count,
    reorder: z.boolean().optional(),
  })
  .refine(
    ({ create, delete: remove, change, reorder }) =>
      [create, remove, change].some((records) => records !== undefined) || reorder !== undefined,
    'needs create, delete, change or reorder',
  );
