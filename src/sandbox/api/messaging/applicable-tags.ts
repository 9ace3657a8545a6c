import type { Inbox } from '../../data/inboxes.ts';
import type { Tag } from '../../data/tags.ts';
import { Problem } from '../../http/answer.ts';
import { type ApiContext, named } from '../request.ts';

/**
 * Why a tag cannot go onto messages of an inbox; undefined when it can. Private tags are for private inboxes, and a
 * private inbox takes the tags of its own teammate alone.
 */
export function misfit(
  tag: Pick<Tag, 'id' | 'is_private' | 'teammate_id'>,
  inbox: Pick<Inbox, 'id' | 'is_private' | 'teammate_id'>,
): string | undefined {
  if (!inbox.is_private) {
    return tag.is_private ? `${tag.id} is private, and the inbox ${inbox.id} is shared.` : undefined;
  }
  return tag.is_private && tag.teammate_id === inbox.teammate_id
    ? undefined
    : `${tag.id} is not a tag of the teammate whose inbox ${inbox.id} is.`;
}

/**
 * The tags that a body names, if they can be applied given the inbox or inboxes (Endpoints, "Message-creation routes").
 * Throws a {@link Problem} (422) for one that cannot, or that there is not; 403 for one out of the token's reach.
 */
export function applicableTags(
  request: ApiContext,
  tagIds: readonly string[],
  inboxes: readonly Inbox[],
): Tag[] {
  return [...new Set(tagIds)].map((id) => {
    const tag = named(request, request.tables.tags, id);
    const problem = inboxes.map((inbox) => misfit(tag, inbox)).find((found) => found !== undefined);
    if (problem !== undefined) throw new Problem(422, `tag_ids: ${problem}`);
    return tag;
  });
}
