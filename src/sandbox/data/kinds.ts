import type { AnswerOf, Operation } from '../../contract/api/api.ts';
import { exportKind, reportKind } from './analytics.ts';
import type { Contact } from './contacts.ts';
import type { Conversation } from './conversations.ts';
import { articleKind, knowledgeBaseKind } from './knowledge-bases.ts';
import { messageKind } from './messages.ts';

/** A record as it is kept: without links, as these depend on how the client reached the service. */
export type Document = Readonly<Record<string, unknown>> & { readonly id: string };

/** What an operation of the contract answers, as it is kept: without links, and without the members named here. */
export type Stored<Op extends Operation, Left extends string = never> = {
  readonly [Name in keyof AnswerOf<Op> as Exclude<Name, '_links' | Left>]: AnswerOf<Op>[Name];
};

export type Account = Stored<'getAccount'>;
type ApplicationEvent = Stored<'getApplicationEvent'>;
export type CannedAnswer = Stored<'getResponse'>;
export type Channel = Stored<'getChannel'>;
export type Inbox = Stored<'getInbox'>;
export type Link = Stored<'getLink'>;
export type Tag = Stored<'getTag'>;
export type Teammate = Stored<'getTeammate'>;

/** Who looks at records, and when: some of them show more, or something else, then. */
export interface View {
  /** Whether the caller reaches what is shared alone, no private resources (Authentication, 9). */
  isShared: boolean;
  /** The service's time, in ms since 1970. */
  now: number;
}

/** What the records of one kind are. */
export interface Kind<D extends Document> {
  /** First letters of the ids. */
  prefix: string;
  /** The record as the API shows it. @param baseUrl `{base_url}` as the client reached it, for links */
  present(document: D, baseUrl: string, view: View): object;
}

/** A kind whose records are shown as they are kept, with links: `self`, and what `more` names. */
function plain<D extends Document>(
  prefix: string,
  path: string,
  more: (self: string, document: D, baseUrl: string) => object = () => ({}),
): Kind<D> {
  return {
    prefix,
    present(document, baseUrl) {
      const self = `${baseUrl}${path}/${document.id}`;
      return { _links: { self, ...more(self, document, baseUrl) }, ...document };
    },
  };
}

const tags = plain<Tag>('tag', '/tags', (self) => ({ children: `${self}/children` }));
const teammates = plain<Teammate>('tea', '/teammates', (self) => ({
  related: { inboxes: `${self}/inboxes` },
}));

/** Everything that a company can own. */
export const KINDS = {
  tags,
  messages: messageKind,
  knowledge_bases: knowledgeBaseKind,
  articles: articleKind,
  analytics_reports: reportKind,
  analytics_exports: exportKind,
  inboxes: plain<Inbox>('inb', '/inboxes'),
  links: plain<Link>('lnk', '/links'),
  responses: plain<CannedAnswer>('rsp', '/responses'),
  accounts: plain<Account>('acc', '/accounts', (self) => ({ related: { contacts: `${self}/contacts` } })),
  channels: plain<Channel>('cha', '/channels', (_, { inbox_id }, baseUrl) => ({
    related: { inbox: `${baseUrl}/inboxes/${inbox_id}` },
  })),
  application_events: {
    prefix: 'evt',
    present: (event: ApplicationEvent, baseUrl: string) => {
      const application = encodeURIComponent(event.application_uid);
      return { _links: { self: `${baseUrl}/applications/${application}/events/${event.id}` }, ...event };
    },
  },
  teammates: {
    prefix: teammates.prefix,
    // The signature is the teammate's own (Authentication, 9).
    present: ({ signature, ...shared }: Teammate, baseUrl: string, view: View) =>
      teammates.present(view.isShared ? shared : { ...shared, signature }, baseUrl, view),
  },
  contacts: plain<Contact>('crd', '/contacts'),
  conversations: {
    prefix: 'cnv',
    present: (conversation: Conversation, baseUrl: string, view: View) => ({
      _links: { self: `${baseUrl}/conversations/${conversation.id}` },
      ...conversation,
      tags: conversation.tags.map((tag) => tags.present(tag as Tag, baseUrl, view)),
      recipient: conversation.recipient && presentRecipient(conversation.recipient, baseUrl),
    }),
  },
};

function presentRecipient(
  { contact_id, ...shown }: NonNullable<Conversation['recipient']>,
  baseUrl: string,
): object {
  const contact = typeof contact_id === 'string' ? `${baseUrl}/contacts/${contact_id}` : null;
  return { _links: { related: { contact } }, ...shown };
}

/** Whether a contact belongs to an account: by a mail address at one of its domains. */
export function isOfAccount({ handles }: Contact, { domains }: Account): boolean {
  const endings = domains.map((domain) => `@${domain.toLowerCase()}`);
  return handles.some(({ handle }) => endings.some((ending) => handle.toLowerCase().endsWith(ending)));
}
