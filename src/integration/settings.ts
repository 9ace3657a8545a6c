import { z } from 'zod';

/**
 * YOURS: environment variables of your own, such as
 * `CRM_KEY: z.string().meta({ secret: true, examples: ['<from the CRM>'] })`. The app reads them when it starts. The
 * handler gets them as `context.settings`, the event handler too. See docs/handler.md, "Settings of your own".
 */
export const SETTINGS = z.object({});
