import type { tagRoutes } from '../../../contract/api/tags.ts';
import type { Collection } from '../../data/collection.ts';
import type { Tag } from '../../data/tags.ts';
import { Problem } from '../../http/answer.ts';
import { listPage, listWhere } from '../list.ts';
import { type ApiRequest, type Handlers, named, own, reach, seconds, show } from '../request.ts';

/** Throws a `Problem` (422) when the new parent is the tag itself or below it. */
function refuseCycle(tags: Collection<Tag>, tag: Tag, parent: Tag): void {
  for (let above: Tag | undefined = parent; above !== undefined; ) {
    if (above.id === tag.id) {
      throw new Problem(422, `parent_tag_id: ${parent.id} is ${tag.id} itself or one of its children.`);
    }
    above = above.parent_tag_id === null ? undefined : tags.find(above.parent_tag_id);
  }
}

/** Whose a private tag is: nothing that is sent changes that. */
function ownership({ teammate_id }: Tag): Pick<Tag, 'teammate_id'> {
  return teammate_id === undefined ? {} : { teammate_id };
}

function updateTag(request: ApiRequest<'updateTag'>) {
  const { tags } = request.tables;
  const { body, params, now } = request;
  const tag = reach(request, tags, params.tag_id);
  if (typeof body.parent_tag_id === 'string') {
    const parent = named(request, tags, body.parent_tag_id);
    if (parent.is_private !== tag.is_private) {
      throw new Problem(422, 'parent_tag_id: a shared tag and a private one are no family.');
    }
    refuseCycle(tags, tag, parent);
  }
  return show(
    request,
    tags,
    tags.replace({ ...tag, ...own(body), ...ownership(tag), updated_at: seconds(now) }),
  );
}

function createChildTag(request: ApiRequest<'createChildTag'>) {
  const { tags } = request.tables;
  const parent = reach(request, tags, request.params.tag_id);
  const at = seconds(request.now);
  const child = tags.add((id) => ({
    description: null,
    highlight: null,
    ...own(request.body),
    name: request.body.name,
    id,
    parent_tag_id: parent.id,
    is_private: parent.is_private,
    ...ownership(parent),
    created_at: at,
    updated_at: at,
  }));
  return show(request, tags, child);
}

export const tagHandlers: Handlers<keyof typeof tagRoutes> = {
  listTags: (request) => listPage(request, request.tables.tags),
  getTag: (request) =>
    show(request, request.tables.tags, reach(request, request.tables.tags, request.params.tag_id)),
  updateTag,
  listChildTags: (request) => {
    const { tags } = request.tables;
    const parent = reach(request, tags, request.params.tag_id);
    return listWhere(request, tags, ({ parent_tag_id }) => parent_tag_id === parent.id);
  },
  createChildTag,
};
