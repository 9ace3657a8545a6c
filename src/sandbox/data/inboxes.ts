import type { Collection, Document, Owner } from './collection.ts';
import { few } from './few.ts';

/** An inbox; a private one belongs to one teammate, out of reach of OAuth tokens (Authentication, 9). */
export type Inbox = Document & {
  readonly name: string;
  readonly is_private: boolean;
  /** Whose it is; null for a shared one. */
  readonly teammate_id: string | null;
};

/** The inboxes of a company: two shared ones, and a private one of the first teammate. */
export function inboxes(owner: Owner, firstTeammate: string): Collection<Inbox> {
  const shared = (name: string) => (id: string) => ({ id, name, is_private: false, teammate_id: null });
  return few<Inbox>(owner, {
    prefix: 'inb',
    start: [
      shared('Support'),
      shared('Sales'),
      (id) => ({ id, name: 'My inbox', is_private: true, teammate_id: firstTeammate }),
    ],
    present: (inbox, baseUrl) => ({ _links: { self: `${baseUrl}/inboxes/${inbox.id}` }, ...inbox }),
  });
}
