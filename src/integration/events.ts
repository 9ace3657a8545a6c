import type { EventHandler } from '../changes/app-events.ts';

/**
 * YOURS. Export a function to hear of trouble: an authorization has ended, a list fails, the app met an error. See
 * docs/handler.md, "Hear of trouble", for a webhook.
 */
export const onEvent: EventHandler | undefined = undefined;
