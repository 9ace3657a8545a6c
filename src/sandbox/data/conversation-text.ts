import { type ConversationLots, draftConversation, numberedBytes } from './conversation-draft.ts';
import { type JsonBytes, thousandthsBytes } from './json-bytes.ts';
import { nameBytes } from './names.ts';

/** The JSON of a generated conversation as the API shows it: that of its document, many times quicker. */
export function conversationText(
  lots: ConversationLots,
  index: number,
  id: string,
  base: JsonBytes,
): JsonBytes {
  const draft = draftConversation(lots, index);
  const { contact, assignee, tag, fields, createdAt } = draft;
  const updatedAt = thousandthsBytes(createdAt, draft.changedAfterMs);
  const link = contact.contactId === null ? 'null' : `"${base}/contacts/${contact.contactId}"`;
  const recipient = `{"_links":{"related":{"contact":${link}}},"name":"${nameBytes(
    contact.person,
  )}","handle":"${contact.local}@${contact.domain}","role":"from"}`;
  const own =
    fields === undefined ? '{}' : `{"order_number":${fields.order_number},"priority":${fields.priority}}`;
  const message = `{"excerpt":${draft.excerpt.json},"is_inbound":${draft.isInbound},"created_at":${updatedAt}}`;
  return `{"_links":{"self":"${base}/conversations/${id}"},"id":"${id}","subject":${numberedBytes(
    draft.subject.json,
    draft.number,
  )},"status":${draft.status.json},"assignee":${
    assignee === undefined ? 'null' : assignee.json
  },"inbox":${draft.inbox.json},"tags":[${
    tag === undefined ? '' : tag.json
  }],"links":[],"custom_fields":${own},"last_message":${message},"is_private":false,"created_at":${createdAt},"updated_at":${updatedAt},"recipient":${recipient}}`;
}
