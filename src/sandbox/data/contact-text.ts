import { draftContact } from './contact-draft.ts';
import { hundredthsBytes, type JsonBytes, thousandthsBytes } from './json-bytes.ts';
import { nameBytes } from './names.ts';

/** The JSON of a generated contact as the API shows it: that of its document, many times quicker. */
export function contactText(seed: number, index: number, id: string, base: JsonBytes): JsonBytes {
  const draft = draftContact(seed, index);
  const { local, createdAt, phone, description, group } = draft;
  const handles = `{"handle":"${local}@${draft.domain}","source":"email"}${
    phone === undefined ? '' : `,{"handle":"${phone}","source":"phone"}`
  }${draft.hasCustomHandle ? `,{"handle":"${local}","source":"custom"}` : ''}`;
  const fields = `{"city":${draft.city.json},"language":${draft.language.json},"plan":${
    draft.plan.json
  },"lifetime_value":${hundredthsBytes(draft.cents)},"newsletter":${draft.newsletter}}`;
  return `{"_links":{"self":"${base}/contacts/${id}"},"id":"${id}","name":"${nameBytes(
    draft.person,
  )}","description":${description === undefined ? '""' : description.json},"avatar_url":null,"handles":[${handles}],"groups":[${
    group === undefined ? '' : group.json
  }],"custom_fields":${fields},"is_private":false,"created_at":${createdAt},"updated_at":${thousandthsBytes(
    createdAt,
    draft.changedAfterMs,
  )}}`;
}
