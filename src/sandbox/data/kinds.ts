import { exportKind, reportKind } from './analytics.ts';
import type { Contact } from './contacts.ts';
import type { Conversation } from './conversations.ts';
import { articleKind, knowledgeBaseKind } from './knowledge-bases.ts';
import { messageKind } from './messages.ts';
import type {
  Account,
  CannedAnswer,
  Channel,
  Document,
  Inbox,
  Kind,
  Link,
  Stored,
  Tag,
  Teammate,
  View,
} from './record.ts';

type ApplicationEvent = Stored<'getApplicationEvent'>;

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
