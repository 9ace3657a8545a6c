import { z } from 'zod';
import { contact } from '../../contract/api/contacts.ts';
import { conversation } from '../../contract/api/conversations.ts';
import { AT_START_S } from './at-start.ts';
import type { Literal } from './collection.ts';
import type { Contact } from './contacts.ts';
import type { Conversation } from './conversations.ts';

/** A record of a seed, as it was given. */
export type LiteralRecord = Readonly<Record<string, unknown>>;

const RECORDS_MAX = 10_000_000;

/** An id that somebody chooses: it stands in paths as it is. */
export const chosenId = z
  .string()
  .regex(/^[A-Za-z0-9][\w.~-]{0,99}$/, 'must be up to 100 letters, digits, ".", "_", "~" and "-"');

/** The contract's members of a contact, each if one likes, and any others. */
export const literalContact = contact.omit({ _links: true }).extend({ id: chosenId }).partial();

/** The same of a conversation. */
export const literalConversation = conversation
  .omit({ _links: true })
  .extend({ id: chosenId, tags: z.array(z.looseObject({ id: z.string().min(1), name: z.string() })) })
  .partial();

/** So many generated records, or literal ones; an error says which of them is wrong. */
export function recordsOf<S extends z.ZodType>(literal: S) {
  return z.union([z.int().min(0).max(RECORDS_MAX), z.array(literal)], {
    error: ({ errors = [] }) => {
      const inner = (errors as z.core.$ZodIssue[][]).flat().find(({ path }) => path.length > 0);
      return inner === undefined
        ? `must be a number up to ${RECORDS_MAX}, or a list of records`
        : `${inner.path.join('.')}: ${inner.message}`;
    },
  });
}

/** A contact of whom nothing else is known. */
export const CONTACT = {
  description: '',
  avatar_url: null,
  handles: [],
  groups: [],
  custom_fields: {},
  is_private: false,
};
/** A conversation of which nothing else is known. */
export const CONVERSATION = {
  subject: '',
  assignee: null,
  recipient: null,
  tags: [],
  links: [],
  custom_fields: {},
  last_message: null,
  is_private: false,
};

/** A record with the members that it needs; links are the service's own. */
function complete(defaults: object, { _links, ...members }: LiteralRecord): unknown {
  const { created_at = AT_START_S } = members;
  return { ...defaults, created_at, updated_at: created_at, ...members };
}

/** The contact that a seed means; it was checked with {@link literalContact}. */
export function toContact(literal: LiteralRecord): Literal<Contact> {
  const [first] = (literal.handles ?? []) as Contact['handles'];
  return complete({ name: first?.handle ?? '', ...CONTACT }, literal) as Literal<Contact>;
}

/**
 * The conversation that a seed means; it was checked with {@link literalConversation}.
 *
 * @param inbox where it is, unless it says something else
 */
export function toConversation(
  literal: LiteralRecord,
  inbox: Conversation['inbox'] | undefined,
): Literal<Conversation> {
  const status = (literal.assignee ?? null) === null ? 'unassigned' : 'assigned';
  return complete({ inbox, status, ...CONVERSATION }, literal) as Literal<Conversation>;
}
