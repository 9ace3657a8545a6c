import { recordsAtStart } from '../data/at-start.ts';
import { Collection, type Literal } from '../data/collection.ts';
import { generateContact } from '../data/contacts.ts';
import { type ConversationParties, generateConversation } from '../data/conversations.ts';
import type { Owner } from '../data/ids.ts';
import { type Document, KINDS, type Kind } from '../data/kinds.ts';
import { type LiteralRecord, toContact, toConversation } from '../data/literals.ts';
import { generateMessage, MESSAGES_EACH } from '../data/messages.ts';
import type { ListOrder } from '../types.ts';

/** Everything that a company owns, one collection a resource, by the names that the control interface uses. */
export type Tables = ReturnType<typeof createTables>;

/** How many records are generated, or the records themselves. */
type Start = number | readonly LiteralRecord[];

/**
 * Makes a company's collections. The same owner and sizes always give the same records.
 * Throws a `Problem` (400) for an id that is given twice.
 */
export function createTables(
  owner: Owner,
  sizes: Record<'contacts' | 'conversations', Start>,
  order: ListOrder,
) {
  const { seed } = owner;
  const table = <D extends Document>(
    kind: Kind<D>,
    start: number | readonly Literal<D>[] = [],
    generate?: (index: number, id: string) => D,
    order?: ListOrder,
  ) => new Collection(kind, owner, start, generate, order);
  const countOf = (start: Start) => (typeof start === 'number' ? start : start.length);
  const start = recordsAtStart(owner);
  const teammates = table(KINDS.teammates, start.teammates);
  const inboxes = table(KINDS.inboxes, start.inboxes);
  const tags = table(KINDS.tags, start.tags);
  const contacts = table(
    KINDS.contacts,
    typeof sizes.contacts === 'number' ? sizes.contacts : sizes.contacts.map(toContact),
    (index, id) => generateContact(seed, index, id, countOf(sizes.contacts)),
    order,
  );
  const parties: ConversationParties = {
    contacts: contacts.count,
    contactAt: (index) => contacts.original(index),
    teammates: teammates.all().map(({ id, name, email }) => ({ id, name, email })),
    inboxes: inboxes.all().flatMap(({ id, name, is_private }) => (is_private ? [] : [{ id, name }])),
    tags: tags.all().filter(({ is_private }) => !is_private),
  };
  const conversations = table(
    KINDS.conversations,
    typeof sizes.conversations === 'number'
      ? sizes.conversations
      : sizes.conversations.map((literal) => toConversation(literal, parties.inboxes[0])),
    (index, id) => generateConversation(seed, parties, index, id, countOf(sizes.conversations)),
    order,
  );
  const messages = table(
    KINDS.messages,
    typeof sizes.conversations === 'number' ? sizes.conversations * MESSAGES_EACH : 0,
    (index, id) => generateMessage(seed, (nth) => conversations.original(nth), parties.teammates, index, id),
  );
  return {
    contacts,
    conversations,
    messages,
    teammates,
    inboxes,
    tags,
    channels: table(KINDS.channels, start.channels),
    responses: table(KINDS.responses, start.responses),
    accounts: table(KINDS.accounts, start.accounts),
    links: table(KINDS.links, start.links),
    knowledge_bases: table(KINDS.knowledge_bases, start.knowledge_bases),
    articles: table(KINDS.articles, start.articles),
    analytics_reports: table(KINDS.analytics_reports),
    analytics_exports: table(KINDS.analytics_exports),
    application_events: table(KINDS.application_events),
  };
}
