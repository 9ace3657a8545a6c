import type { Kind, Owner } from './collection.ts';
import { personName } from './names.ts';
import { Random, seedOf } from './random.ts';
import { CITIES, CONTACT_DESCRIPTIONS, CONTACT_GROUPS, DOMAINS, LANGUAGES, SEGMENTS } from './words.ts';

const KIND = 1;
/** The generated past: records are as old as this, whatever the clock says, so that a document never changes by itself. */
const FIRST_CREATED_S = Date.UTC(2021, 0, 4) / 1000;
/** Numbers that are kept for fiction, as the domains are for examples: they reach no one. */
const FICTIONAL_PHONE = '+447700900';
const CREATED_SPAN_S = 4 * 365 * 86_400;

/** What a conversation shows of its contact. */
export interface ContactIdentity {
  name: string;
  handle: string;
}

function identity(random: Random, index: number): ContactIdentity {
  const { name, latin } = personName(random);
  return { name, handle: `${latin}.${index.toString(36)}@${random.pick(DOMAINS)}` };
}

/** Name and mail address of a contact: what its document carries too. */
export function contactIdentity(seed: number, index: number): ContactIdentity {
  return identity(new Random(seedOf(seed, KIND, index)), index);
}

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
  const random = new Random(seedOf(owner.seed, KIND, index));
  const { name, handle } = identity(random, index);
  const createdAt = FIRST_CREATED_S + random.int(CREATED_SPAN_S);
  const handles = [{ handle, source: 'email' }];
  if (random.chance(45))
    handles.push({ handle: `${FICTIONAL_PHONE}${100 + random.int(900)}`, source: 'phone' });
  if (random.chance(12)) handles.push({ handle: handle.slice(0, handle.indexOf('@')), source: 'custom' });
  return {
    id,
    name,
    description: random.chance(25) ? random.pick(CONTACT_DESCRIPTIONS) : '',
    avatar_url: null,
    handles,
    groups: random.chance(40) ? [{ name: random.pick(CONTACT_GROUPS) }] : [],
    custom_fields: {
      city: random.pick(CITIES),
      language: random.pick(LANGUAGES),
      plan: random.pick(SEGMENTS),
      lifetime_value: random.int(1_000_000) / 100,
      newsletter: random.chance(50),
    },
    is_private: false,
    created_at: createdAt,
    updated_at: createdAt + random.int(90 * 86_400_000) / 1000,
  };
}

/** The contacts of a company. */
export function contactKind(owner: Owner): Kind<Contact> {
  return {
    prefix: 'crd',
    shared: true,
    build: (index, id) => contact(owner, index, id),
    present: (document, baseUrl) => ({
      _links: { self: `${baseUrl}/contacts/${document.id}` },
      ...document,
    }),
  };
}
