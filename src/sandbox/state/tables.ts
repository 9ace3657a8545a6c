import { exportKind, reportKind } from '../data/analytics.ts';
import {
  ACCOUNTS_AT_START,
  articlesAtStart,
  channelsAtStart,
  inboxesAtStart,
  KNOWLEDGE_BASES_AT_START,
  LINKS_AT_START,
  responsesAtStart,
  tagsAtStart,
  teammatesAtStart,
} from '../data/at-start.ts';
import { Collection, type CollectionState, type Literal } from '../data/collection.ts';
import { type Contact, generateContact } from '../data/contacts.ts';
import { type Conversation, type ConversationParties, generateConversation } from '../data/conversations.ts';
import type { Owner } from '../data/ids.ts';
import { type Document, KINDS, type Kind } from '../data/kinds.ts';
import { articleKind, knowledgeBaseKind } from '../data/knowledge-bases.ts';
import { type LiteralRecord, toContact, toConversation } from '../data/literals.ts';
import { generatedMessages, messageKind } from '../data/messages.ts';

/** Everything that a company owns, one collection a resource, by the names that the control interface uses. */
export type Tables = ReturnType<typeof createTables>;

/** The records at start of the kinds that may be many: literal ones, or how many are generated. */
export interface TableSizes {
  contacts: number | readonly LiteralRecord[];
  conversations: number | readonly LiteralRecord[];
}

/**
 * Makes a company's collections. The same owner and sizes always give the same records.
 * Throws a `Problem` (400) for an id that is given twice.
 */
export function createTables(owner: Owner, sizes: TableSizes) {
  const table = <D extends Document>(kind: Kind<D>, start: number | readonly Literal<D>[] = []) =>
    new Collection(kind, owner, start);
  const teammates = table(KINDS.teammates, teammatesAtStart(owner));
  const inboxes = table(KINDS.inboxes, inboxesAtStart(teammates.all().map(({ id }) => id)));
  const tags = table(KINDS.tags, tagsAtStart(teammates.idAt(0)));
  const sharedInboxes = inboxes
    .all()
    .filter(({ is_private }) => !is_private)
    .map(({ id, name }) => ({ id, name }));
  const contacts = table<Contact>(
    { ...KINDS.contacts, build: (index, id) => generateContact(owner.seed, index, id) },
    typeof sizes.contacts === 'number' ? sizes.contacts : sizes.contacts.map(toContact),
  );
  const parties: ConversationParties = {
    contacts: contacts.count,
    contactAt: (index) => contacts.original(index),
    assignees: teammates.all().map(({ id, name, email }) => ({ id, name, email })),
    inboxes: sharedInboxes,
    tags: tags.all().filter(({ is_private }) => !is_private),
  };
  const conversations = table<Conversation>(
    { ...KINDS.conversations, build: (index, id) => generateConversation(owner.seed, parties, index, id) },
    typeof sizes.conversations === 'number'
      ? sizes.conversations
      : sizes.conversations.map((literal) => toConversation(literal, sharedInboxes[0])),
  );
  const knowledgeBases = table(knowledgeBaseKind, KNOWLEDGE_BASES_AT_START);
  return {
    contacts,
    conversations,
    messages: table(
      messageKind(owner, (index) => conversations.original(index), teammates.all()),
      typeof sizes.conversations === 'number' ? generatedMessages(sizes.conversations) : 0,
    ),
    teammates,
    inboxes,
    tags,
    channels: table(KINDS.channels, channelsAtStart(sharedInboxes.map(({ id }) => id))),
    responses: table(KINDS.responses, responsesAtStart(inboxes.idAt(0))),
    accounts: table(KINDS.accounts, ACCOUNTS_AT_START),
    links: table(KINDS.links, LINKS_AT_START),
    knowledge_bases: knowledgeBases,
    articles: table(articleKind, articlesAtStart(knowledgeBases.idAt(0), teammates.idAt(0))),
    analytics_reports: table(reportKind(owner)),
    analytics_exports: table(exportKind),
    application_events: table(KINDS.application_events),
  };
}

/** What was changed in a company since its start: plain data. */
export type TablesState = Record<string, CollectionState>;

/** Reads what was changed; it is not copied. */
export function readTables(tables: Tables): TablesState {
  return Object.fromEntries(Object.entries(tables).map(([name, { state }]) => [name, state]));
}

/** Puts changes in place of what was there. */
export function writeTables(tables: Tables, states: TablesState): void {
  for (const [name, table] of Object.entries(tables)) {
    const state = states[name];
    if (state !== undefined) table.state = state;
  }
}
