import type { Collection, Document, Owner } from './collection.ts';
import { AT_START_S, few } from './few.ts';

/** A tag (Resources, "Tag"); a private one belongs to one teammate, out of reach of OAuth tokens (Authentication, 9). */
export type Tag = Document & {
  readonly name: string;
  readonly description: string | null;
  readonly highlight: string | null;
  readonly parent_tag_id: string | null;
  readonly is_private: boolean;
  /** Whose it is, if it is private. */
  readonly teammate_id?: string;
  readonly created_at: number;
  readonly updated_at: number;
};

const NAMES = ['Urgent', 'Refund', 'Waiting for customer', 'Lob 💛'];
const PRIVATE_NAME = 'My follow-ups';

/** The tags of a company: four shared ones, and a private one of the first teammate. */
export function tags(owner: Owner, firstTeammate: string): Collection<Tag> {
  const make = (name: string, teammate: Pick<Tag, 'teammate_id'>) => (id: string) => ({
    id,
    name,
    description: null,
    highlight: null,
    parent_tag_id: null,
    is_private: teammate.teammate_id !== undefined,
    ...teammate,
    created_at: AT_START_S,
    updated_at: AT_START_S,
  });
  return few<Tag>(owner, {
    prefix: 'tag',
    start: [...NAMES.map((name) => make(name, {})), make(PRIVATE_NAME, { teammate_id: firstTeammate })],
    present: (tag, baseUrl) => ({
      _links: {
        self: `${baseUrl}/tags/${tag.id}`,
        children: `${baseUrl}/tags/${tag.id}/children`,
      },
      ...tag,
      teammate_id: (tag.is_private && tag.teammate_id) || null,
    }),
  });
}
