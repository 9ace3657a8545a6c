import type { Kind, Owner } from './collection.ts';
import { draftContact } from './contact-draft.ts';
import { contactText } from './contact-text.ts';
import { writtenName } from './names.ts';

/** The index of the contact whose mail address or handle this could be, if it was generated. */
export function indexInHandle(handle: string): number | undefined {
  const [, digits] = /\.([0-9a-z]{1,7})(?:@|$)/.exec(handle) ?? [];
  return digits === undefined ? undefined : Number.parseInt(digits, 36);
}

/** A contact (the fields are our choice: the specification shows none). */
export type Contact = Omit<ReturnType<typeof contact>, 'custom_fields'> & {
  custom_fields: Readonly<Record<string, unknown>>;
};

function contact(owner: Owner, index: number, id: string) {
  const draft = draftContact(owner.seed, index);
  const { local, createdAt, phone, city, language, plan } = draft;
  const handles = [{ handle: `${local}@${draft.domain}`, source: 'email' }];
  if (phone !== undefined) handles.push({ handle: phone, source: 'phone' });
  if (draft.hasCustomHandle) handles.push({ handle: local, source: 'custom' });
  return {
    id,
    name: writtenName(draft.person),
    description: draft.description?.value ?? '',
    avatar_url: null,
    handles,
    groups: draft.group === undefined ? [] : [{ ...draft.group.value }],
    custom_fields: {
      city: city.value,
      language: language.value,
      plan: plan.value,
      lifetime_value: draft.cents / 100,
      newsletter: draft.newsletter,
    },
    is_private: false,
    created_at: createdAt,
    updated_at: createdAt + draft.changedAfterMs / 1000,
  };
}

/** The contacts of a company. */
export function contactKind(owner: Owner): Kind<Contact> {
  return {
    prefix: 'crd',
    build: (index, id) => contact(owner, index, id),
    text: (index, id, base) => contactText(owner.seed, index, id, base),
    present: (document, baseUrl) => ({
      _links: { self: `${baseUrl}/contacts/${document.id}` },
      ...document,
    }),
  };
}
