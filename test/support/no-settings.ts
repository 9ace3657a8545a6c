import { z } from 'zod';

/** In the place of a fork's settings. */
export const SETTINGS = z.object({});
