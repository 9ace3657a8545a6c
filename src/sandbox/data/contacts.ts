import { personName } from './names.ts';
import { Random, seedOf } from './random.ts';
import type { Stored } from './record.ts';
import { CITIES, CONTACT_DESCRIPTIONS, CONTACT_GROUPS, DOMAINS, LANGUAGES, SEGMENTS } from './words.ts';

const KIND = 1;
/** The generated past: records are as old as this, whatever the clock says, so that a record never changes by itself. */
const FIRST_CHANGED_S = Date.UTC(2021, 3, 4) / 1000;
const CHANGED_SPAN_S = 4 * 365 * 86_400;
const AGE_MAX_MS = 90 * 86_400_000;
/** Numbers that are kept for fiction, as the domains are for examples: they reach no one. */
const FICTIONAL_PHONE = '+447700900';

/** A contact (the fields are our choice: the specification shows none). */
export type Contact = Stored<'getContact'>;

/** The index of the contact whose mail address or handle this could be, if it was generated. */
export function indexInHandle(handle: string): number | undefined {
  const [, digits] = /\.([0-9a-z]{1,7})(?:@|$)/.exec(handle) ?? [];
  return digits === undefined ? undefined : Number.parseInt(digits, 36);
}

/** The dates of a generated record, in seconds since 1970, from its change and its age then. */
export function datesOf(changedS: number, ageMs: number): Pick<Contact, 'created_at' | 'updated_at'> {
  const updated_at = Math.floor(changedS * 1000) / 1000;
  return { created_at: Math.floor(updated_at - ageMs / 1000), updated_at };
}

/**
 * Generates a contact. The order of the draws is what makes a contact the same in every version.
 *
 * @param count of generated contacts: each changed later than the one before it
 */
export function generateContact(seed: number, index: number, id: string, count: number): Contact {
  const random = new Random(seedOf(seed, KIND, index));
  const { name, latin } = personName(random);
  const local = `${latin}.${index.toString(36)}`;
  const handles = [{ handle: `${local}@${random.pick(DOMAINS)}`, source: 'email' }];
  const changedS =
    FIRST_CHANGED_S + (index * CHANGED_SPAN_S + random.int(CHANGED_SPAN_S)) / Math.max(1, count);
  if (random.chance(45)) {
    handles.push({ handle: `${FICTIONAL_PHONE}${100 + random.int(900)}`, source: 'phone' });
  }
  if (random.chance(12)) handles.push({ handle: local, source: 'custom' });
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
    ...datesOf(changedS, random.int(AGE_MAX_MS)),
  };
}
