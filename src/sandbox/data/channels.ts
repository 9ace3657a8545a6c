import type { Collection, Document, Owner } from './collection.ts';
import { AT_START_S, few } from './few.ts';

/** A channel: where messages of an inbox come from and go to (the fields are our choice). */
export type Channel = Document & {
  readonly name: string;
  readonly type: string;
  readonly address: string | null;
  readonly send_as: string | null;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly inbox_id: string;
  /** As its inbox is. */
  readonly is_private: boolean;
  readonly created_at: number;
  readonly updated_at: number;
};

const AT_START = [
  { name: 'Shop chat', type: 'custom' },
  { name: 'Parcel tracker', type: 'application' },
] as const;

/** Types of channels whose messages another system brings. */
const FED_FROM_OUTSIDE: readonly string[] = ['custom', 'application'];

/** Whether another system brings the channel's messages; others fetch them themselves. */
export function isFedFromOutside({ type }: Channel): boolean {
  return FED_FROM_OUTSIDE.includes(type);
}

/** The channels of a company: two at start, one in each of the first inboxes. */
export function channels(owner: Owner, inboxIds: readonly string[]): Collection<Channel> {
  return few<Channel>(owner, {
    prefix: 'cha',
    start: AT_START.map(({ name, type }) => (id, index) => ({
      id,
      name,
      type,
      address: null,
      send_as: null,
      settings: {},
      inbox_id: inboxIds[index % inboxIds.length] ?? '',
      is_private: false,
      created_at: AT_START_S,
      updated_at: AT_START_S,
    })),
    present: (channel, baseUrl) => ({
      _links: {
        self: `${baseUrl}/channels/${channel.id}`,
        related: { inbox: `${baseUrl}/inboxes/${channel.inbox_id}` },
      },
      ...channel,
    }),
  });
}
