import { AT_START } from '../data/at-start.ts';
import { Collection, type Literal } from '../data/collection.ts';
import { type Contact, generateContact } from '../data/contacts.ts';
import { type Conversation, type ConversationParties, generateConversation } from '../data/conversations.ts';
import type { Owner } from '../data/ids.ts';
import { KINDS } from '../data/kinds.ts';
import { complete } from '../data/literals.ts';
import { generateMessage, MESSAGES_EACH, type Message } from '../data/messages.ts';
import type { Document, Kind } from '../data/record.ts';
import { Problem } from '../http/answer.ts';
import type { CompanySpec, ListOrder, LiteralRecord, SeededResource } from '../types.ts';

const CONTACTS_DEFAULT = 100;
const CONVERSATIONS_DEFAULT = 50;

/** Resources of which a company has few: it is given records, not a number of them. */
type Few = Exclude<SeededResource, 'contacts' | 'conversations'>;

const countOf = (start: number | readonly LiteralRecord[]) =>
  typeof start === 'number' ? start : start.length;

/** Everything that a company owns, one collection a resource, by the names that the control interface uses. */
export type Tables = ReturnType<typeof createTables>;

const idsOf = (table: Collection) => table.all().map(({ id }) => id);

/** Throws a {@link Problem} (400) if a given record belongs to one that there is not. */
function checkOwner(spec: CompanySpec, resource: Few, member: string, owners: Collection): void {
  for (const [place, { [member]: id }] of (spec[resource] ?? []).entries()) {
    if (id === undefined ? owners.count > 0 : owners.find(String(id)) !== undefined) continue;
    throw new Problem(
      400,
      `${resource}: ${place}.${member}: there is no ${id ?? 'record that it could belong to'}.`,
    );
  }
}

/** The conversations of a spec, each in this inbox and with its last message, if it names no others. */
function withLast(
  spec: CompanySpec,
  conversations: readonly LiteralRecord[],
  inbox: unknown,
): LiteralRecord[] {
  const last = new Map<unknown, NonNullable<Conversation['last_message']>>();
  for (const message of spec.messages ?? []) {
    const {
      conversation_id,
      blurb: excerpt,
      is_inbound,
      created_at,
    } = complete('messages', message) as Message;
    const isOlder = created_at < (last.get(conversation_id)?.created_at ?? 0);
    if (!isOlder) last.set(conversation_id, { excerpt, is_inbound, created_at });
  }
  return conversations.map((one) => ({ inbox, last_message: last.get(one.id) ?? null, ...one }));
}

/**
 * Makes a company's collections. The same owner and spec always give the same records.
 * Throws a {@link Problem} (400) for an id that is given twice, and for a record of something that there is not.
 */
export function createTables(owner: Owner, spec: CompanySpec & { order: ListOrder }) {
  const { seed } = owner;
  const { contacts: people = CONTACTS_DEFAULT, conversations: talks = CONVERSATIONS_DEFAULT, order } = spec;
  const completed = <D extends Document>(resource: SeededResource, records: readonly LiteralRecord[]) =>
    records.map((record) => complete(resource, record) as Literal<D>);
  const few = <D extends Document>(
    resource: Few,
    kind: Kind<D>,
    atStart: readonly LiteralRecord[],
    owned: (record: LiteralRecord) => LiteralRecord = () => ({}),
  ) => {
    const records = (spec[resource] ?? atStart).map((record) => ({ ...owned(record), ...record }));
    return new Collection<D>(kind, owner, completed(resource, records));
  };
  const empty = <D extends Document>(kind: Kind<D>) => new Collection<D>(kind, owner, []);

  const teammates = few('teammates', KINDS.teammates, AT_START.teammates(seed));
  const teammateIds = idsOf(teammates);
  const inboxes = few('inboxes', KINDS.inboxes, AT_START.inboxes(teammateIds));
  const shared = inboxes.all().filter(({ is_private }) => !is_private);
  const tags = few('tags', KINDS.tags, AT_START.tags(teammateIds));
  const contacts = new Collection(
    KINDS.contacts,
    owner,
    typeof people === 'number' ? people : completed<Contact>('contacts', people),
    (index, id) => generateContact(seed, index, id, countOf(people)),
    order,
  );
  const parties: ConversationParties = {
    contacts: contacts.count,
    contactAt: (index) => contacts.original(index),
    teammates: teammates.all().map(({ id, name, email }) => ({ id, name, email })),
    inboxes: shared.map(({ id, name }) => ({ id, name })),
    tags: tags.all().filter(({ is_private }) => !is_private),
  };
  const [inbox] = parties.inboxes;
  const conversations = new Collection(
    KINDS.conversations,
    owner,
    typeof talks === 'number'
      ? talks
      : completed<Conversation>('conversations', withLast(spec, talks, inbox)),
    (index, id) => generateConversation(seed, parties, index, id, countOf(talks)),
    order,
  );
  checkOwner(spec, 'messages', 'conversation_id', conversations);
  const messages = new Collection(
    KINDS.messages,
    owner,
    typeof talks === 'number' ? talks * MESSAGES_EACH : completed<Message>('messages', spec.messages ?? []),
    (index, id) => generateMessage(seed, (nth) => conversations.original(nth), parties.teammates, index, id),
  );
  checkOwner(spec, 'channels', 'inbox_id', inboxes);
  const inboxIds = shared.map(({ id }) => id);
  const knowledge_bases = few('knowledge_bases', KINDS.knowledge_bases, AT_START.knowledge_bases);
  checkOwner(spec, 'articles', 'knowledge_base_id', knowledge_bases);
  const [base] = knowledge_bases.all();
  return {
    contacts,
    conversations,
    messages,
    teammates,
    inboxes,
    tags,
    channels: few('channels', KINDS.channels, AT_START.channels(inboxIds), () => ({ inbox_id: inbox?.id })),
    responses: few('responses', KINDS.responses, AT_START.responses(inboxIds)),
    accounts: few('accounts', KINDS.accounts, AT_START.accounts),
    links: few('links', KINDS.links, AT_START.links),
    knowledge_bases,
    articles: few(
      'articles',
      KINDS.articles,
      spec.knowledge_bases === undefined ? AT_START.articles(teammateIds) : [],
      ({ knowledge_base_id = base?.id }) => ({
        knowledge_base_id,
        default_locale: knowledge_bases.find(String(knowledge_base_id))?.default_locale,
      }),
    ),
    analytics_reports: empty(KINDS.analytics_reports),
    analytics_exports: empty(KINDS.analytics_exports),
    application_events: empty(KINDS.application_events),
  };
}
