import type { Collection, Document, Owner } from './collection.ts';
import { few } from './few.ts';

/** An event that an application told a company of. */
export type ApplicationEvent = Document & {
  /** Client id of the application. */
  readonly application_uid: string;
  readonly type: string;
  readonly object: unknown;
  readonly payload: unknown;
  readonly status: 'accepted';
  readonly created_at: number;
};

/** The events of a company: none at start. */
export function applicationEvents(owner: Owner): Collection<ApplicationEvent> {
  return few<ApplicationEvent>(owner, {
    prefix: 'evt',
    start: [],
    present: (event, baseUrl) => ({
      _links: {
        self: `${baseUrl}/applications/${encodeURIComponent(event.application_uid)}/events/${event.id}`,
      },
      ...event,
    }),
  });
}
