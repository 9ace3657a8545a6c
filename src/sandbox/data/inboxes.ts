import type { Collection, Document, Owner } from './collection.ts';
import { AT_START_S, few } from './few.ts';
import type { Teammate } from './teammates.ts';

/** As many teammates, the first ones, are in the inbox that is not everybody's. */
const SMALL_TEAM = 2;

/** An inbox; a private one belongs to one teammate, out of reach of OAuth tokens (Authentication, 9). */
export type Inbox = Document & {
  readonly name: string;
  readonly is_private: boolean;
  /** Whose it is; null for a shared one. */
  readonly teammate_id: string | null;
  /** Who can access it. */
  readonly teammate_ids: readonly string[];
  readonly custom_fields: Readonly<Record<string, unknown>>;
  readonly created_at: number;
  readonly updated_at: number;
};

/**
 * The inboxes of a company: one that all teammates share, one that the first two share, and a private one of the first.
 */
export function inboxes(owner: Owner, teammates: Collection<Teammate>): Collection<Inbox> {
  const make = (name: string, members: readonly string[], ownerId: string | null) => (id: string) => ({
    id,
    name,
    is_private: ownerId !== null,
    teammate_id: ownerId,
    teammate_ids: members,
    custom_fields: {},
    created_at: AT_START_S,
    updated_at: AT_START_S,
  });
  const everyone = teammates.all().map(({ id }) => id);
  const first = teammates.idAt(0);
  return few<Inbox>(owner, {
    prefix: 'inb',
    start: [
      make('Support', everyone, null),
      make('Sales', everyone.slice(0, SMALL_TEAM), null),
      make('My inbox', [first], first),
    ],
    present: (inbox, baseUrl) => ({ _links: { self: `${baseUrl}/inboxes/${inbox.id}` }, ...inbox }),
  });
}
