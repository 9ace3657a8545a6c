import type { Collection, Document, Owner, View } from './collection.ts';
import { AT_START_S, few } from './few.ts';
import { personName } from './names.ts';
import { Random, seedOf } from './random.ts';

const KIND = 3;
const TEAMMATES_MIN = 3;

/** A person who works at a company; only administrators may authorize an application (Authentication, 3). */
export type Teammate = Document & {
  readonly email: string;
  readonly username: string;
  readonly first_name: string;
  readonly last_name: string;
  /** First and last name. */
  readonly name: string;
  readonly is_admin: boolean;
  readonly is_available: boolean;
  readonly is_blocked: boolean;
  readonly custom_fields: Readonly<Record<string, unknown>>;
  /** HTML; private to the teammate (Authentication, 9). */
  readonly signature: string | null;
  readonly created_at: number;
  readonly updated_at: number;
};

/** The parts of a teammate's name, which say the same. */
export type TeammateNames = Pick<Teammate, 'first_name' | 'last_name' | 'name'>;

/** A whole name taken apart: what stands before the first blank is the first name. */
export function namesOfWhole(name: string): TeammateNames {
  const [first_name = '', ...others] = name.trim().split(/\s+/);
  return { first_name, last_name: others.join(' '), name };
}

/** First and last name put together. */
export function namesOfParts(first_name: string, last_name: string): TeammateNames {
  return { first_name, last_name, name: `${first_name} ${last_name}`.trim() };
}

function present({ signature, ...shared }: Teammate, baseUrl: string, { isShared }: View) {
  const self = `${baseUrl}/teammates/${shared.id}`;
  const links = { _links: { self, related: { inboxes: `${self}/inboxes` } } };
  return isShared ? { ...links, ...shared } : { ...links, ...shared, signature };
}

/** The teammates of a company: three to five, of whom the first and the fourth are administrators. */
export function teammates(owner: Owner): Collection<Teammate> {
  const random = new Random(seedOf(owner.seed, KIND, 0));
  const people = Array.from({ length: TEAMMATES_MIN + random.int(3) }, () => personName(random, 'latin'));
  return few<Teammate>(owner, {
    prefix: 'tea',
    start: people.map(({ name, latin }) => (id, index) => ({
      id,
      email: `${latin}@team.example`,
      username: latin.replace('.', '_'),
      ...namesOfWhole(name),
      is_admin: index === 0 || index === 3,
      is_available: true,
      is_blocked: false,
      custom_fields: {},
      signature: `<p>Kind regards,<br>${name}</p>`,
      created_at: AT_START_S,
      updated_at: AT_START_S,
    })),
    present,
  });
}
