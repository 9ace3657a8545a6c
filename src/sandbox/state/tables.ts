import { accounts } from '../data/accounts.ts';
import { analyticsExports } from '../data/analytics-exports.ts';
import { analyticsReports } from '../data/analytics-reports.ts';
import { applicationEvents } from '../data/application-events.ts';
import { articles } from '../data/articles.ts';
import { channels } from '../data/channels.ts';
import { Collection, type CollectionState, type Owner } from '../data/collection.ts';
import { contactKind } from '../data/contacts.ts';
import { conversationKind } from '../data/conversations.ts';
import { inboxes } from '../data/inboxes.ts';
import { knowledgeBases } from '../data/knowledge-bases.ts';
import { links } from '../data/links.ts';
import { generatedMessages, messageKind } from '../data/messages.ts';
import { responses } from '../data/responses.ts';
import { tags } from '../data/tags.ts';
import { teammates } from '../data/teammates.ts';

/** Everything that a company owns, one collection a resource, by the names that the control interface uses. */
export type Tables = ReturnType<typeof createTables>;

/** How many records there are at start of the kinds that may be many. */
export interface TableSizes {
  contacts: number;
  conversations: number;
}

/** Makes a company's collections. The same owner and sizes always give the same records. */
export function createTables(owner: Owner, sizes: TableSizes) {
  const ownTeammates = teammates(owner);
  const ownInboxes = inboxes(owner, ownTeammates);
  const ownTags = tags(owner, ownTeammates.idAt(0));
  const ownContacts = new Collection(contactKind(owner), owner, sizes.contacts);
  const bases = knowledgeBases(owner);
  const parties = {
    contacts: { count: sizes.contacts, idAt: (index: number) => ownContacts.idAt(index) },
    teammates: ownTeammates.all(),
    inboxes: ownInboxes
      .all()
      .filter((inbox) => !inbox.is_private)
      .map(({ id, name }) => ({ id, name })),
    tags: ownTags.all().filter((tag) => !tag.is_private),
  };
  const ownConversationKind = conversationKind(owner, parties);
  const ownConversations = new Collection(ownConversationKind, owner, sizes.conversations);
  const ownMessageKind = messageKind(owner, {
    conversationAt: (index) => ownConversationKind.build(index, ownConversations.idAt(index)),
    teammates: parties.teammates,
  });
  return {
    contacts: ownContacts,
    conversations: ownConversations,
    messages: new Collection(ownMessageKind, owner, generatedMessages(sizes.conversations)),
    teammates: ownTeammates,
    inboxes: ownInboxes,
    tags: ownTags,
    channels: channels(
      owner,
      parties.inboxes.map(({ id }) => id),
    ),
    responses: responses(owner, ownInboxes.idAt(0)),
    accounts: accounts(owner),
    links: links(owner),
    knowledge_bases: bases,
    articles: articles(owner, bases.idAt(0), ownTeammates.idAt(0)),
    analytics_reports: analyticsReports(owner),
    analytics_exports: analyticsExports(owner),
    application_events: applicationEvents(owner),
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
