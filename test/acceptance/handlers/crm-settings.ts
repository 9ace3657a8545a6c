import { z } from 'zod';

/** The variables of a made-up fork. */
export const SETTINGS = z.object({
  CRM_URL: z.url().meta({ examples: ['https://crm.example'] }),
  CRM_LOGIN: z
    .string()
    .min(12)
    .meta({ secret: true, examples: ['<from the CRM>'] }),
  CRM_BATCH: z.coerce.number().default(50),
});
