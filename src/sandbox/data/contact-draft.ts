import { encodeAll } from './json-bytes.ts';
import { drawPerson, latinOf, type Person } from './names.ts';
import { Random, seedOf } from './random.ts';
import { CITIES, CONTACT_DESCRIPTIONS, CONTACT_GROUPS, DOMAINS, LANGUAGES, SEGMENTS } from './words.ts';

const KIND = 1;
/** The generated past: records are as old as this, whatever the clock says, so that a document never changes by itself. */
const FIRST_CREATED_S = Date.UTC(2021, 0, 4) / 1000;
const CREATED_SPAN_S = 4 * 365 * 86_400;
const CHANGED_WITHIN_MS = 90 * 86_400_000;
/** Numbers that are kept for fiction, as the domains are for examples: they reach no one. */
const FICTIONAL_PHONE = '+447700900';

const DESCRIPTIONS = encodeAll(CONTACT_DESCRIPTIONS);
const GROUPS = encodeAll(CONTACT_GROUPS.map((name) => ({ name })));
const CITY = encodeAll(CITIES);
const LANGUAGE = encodeAll(LANGUAGES);
const PLAN = encodeAll(SEGMENTS);

/** Name and mail address of a contact: what conversations show of it too. */
export interface IdentityDraft {
  person: Person;
  /** The address before the `@`. */
  local: string;
  domain: string;
}

function identity(random: Random, index: number): IdentityDraft {
  const person = drawPerson(random);
  return { person, local: `${latinOf(person)}.${index.toString(36)}`, domain: random.pick(DOMAINS) };
}

/** What its document carries too. */
export function draftIdentity(seed: number, index: number): IdentityDraft {
  return identity(new Random(seedOf(seed, KIND, index)), index);
}

/** Draws a contact. The order of the draws is what makes a contact the same in every version. */
export function draftContact(seed: number, index: number) {
  const random = new Random(seedOf(seed, KIND, index));
  return {
    ...identity(random, index),
    createdAt: FIRST_CREATED_S + random.int(CREATED_SPAN_S),
    phone: random.chance(45) ? `${FICTIONAL_PHONE}${100 + random.int(900)}` : undefined,
    hasCustomHandle: random.chance(12),
    description: random.chance(25) ? random.pick(DESCRIPTIONS) : undefined,
    group: random.chance(40) ? random.pick(GROUPS) : undefined,
    city: random.pick(CITY),
    language: random.pick(LANGUAGE),
    plan: random.pick(PLAN),
    cents: random.int(1_000_000),
    newsletter: random.chance(50),
    changedAfterMs: random.int(CHANGED_WITHIN_MS),
  };
}
