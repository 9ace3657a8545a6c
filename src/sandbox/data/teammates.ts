import type { Collection, Document, Owner } from './collection.ts';
import { few } from './few.ts';
import { personName } from './names.ts';
import { Random, seedOf } from './random.ts';

const KIND = 3;
const TEAMMATES_MIN = 3;

/** A person who works at a company; only administrators may authorize an application (Authentication, 3). */
export type Teammate = Document & {
  readonly name: string;
  readonly email: string;
  readonly is_admin: boolean;
};

/** The teammates of a company: three to five, of whom the first and the fourth are administrators. */
export function teammates(owner: Owner): Collection<Teammate> {
  const random = new Random(seedOf(owner.seed, KIND, 0));
  const people = Array.from({ length: TEAMMATES_MIN + random.int(3) }, () => personName(random, 'latin'));
  return few<Teammate>(owner, {
    prefix: 'tea',
    start: people.map(({ name, latin }) => (id, index) => ({
      id,
      name,
      email: `${latin}@team.example`,
      is_admin: index === 0 || index === 3,
    })),
    present: (teammate, baseUrl) => ({
      _links: { self: `${baseUrl}/teammates/${teammate.id}` },
      ...teammate,
    }),
  });
}
