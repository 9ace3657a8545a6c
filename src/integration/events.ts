import type { EventHandler } from '../changes/app-events.ts';

/**
 * YOURS: `export const onEvent: EventHandler = async (event) => { … };` in place of the line below. It is called when
 * somebody should look: a company's authorization has ended, a list fails, the app has met an error. docs/handler.md
 * shows how to post events to a webhook.
 */
export const onEvent: EventHandler | undefined = undefined;
