import type { Conversation } from '../../data/conversations.ts';
import type { Message, MessageContent } from '../../data/messages.ts';
import type { KnownBy } from '../../state/correspondence.ts';
import { type ApiContext, seconds } from '../request.ts';
import { addMessage } from './add-message.ts';
import { afterMessage, opened, taggedWith } from './conversation-changes.ts';
import { type Beginning, startConversation } from './start-conversation.ts';

/** What another system calls a conversation or a message. */
export type Reference = readonly [KnownBy, ...string[]];

/** A message that another system brings. */
export interface OutsideMessage {
  /** What its conversation is called there; undefined for one of its own. */
  thread: Reference | undefined;
  /** What the message is called there; undefined if it was not said. */
  reference: Reference | undefined;
  /** How the conversation begins, if it is new. */
  beginning: Beginning;
  content: MessageContent;
  /** Whether it came in just now, which opens its conversation again. */
  isNews: boolean;
}

/** The conversation that a reference leads to, wherever it was moved; undefined when it is new, or gone. */
export function knownConversation(
  { tables, company }: ApiContext,
  reference: Reference | undefined,
): Conversation | undefined {
  const id = reference && company.correspondence.find(...reference);
  return id === undefined ? undefined : tables.conversations.find(id);
}

function knownMessage({ tables, company }: ApiContext, reference: Reference | undefined) {
  const id = reference && company.correspondence.find(...reference);
  const message = id === undefined ? undefined : tables.messages.find(id);
  const conversation = message && tables.conversations.find(message.conversation_id);
  return message && conversation && { message, conversation };
}

/** The message that there is already under this reference. */
export function alreadyTakenIn(request: ApiContext, { reference }: OutsideMessage): Message | undefined {
  return knownMessage(request, reference)?.message;
}

/** Puts another content in the place of a message's, if there is one under this reference. */
export function replaceTakenIn(request: ApiContext, outside: OutsideMessage): Message | undefined {
  const known = knownMessage(request, outside.reference);
  if (known === undefined) return undefined;
  const { messages, conversations } = request.tables;
  const { id, message_uid, conversation_id, created_at, seen_at } = known.message;
  const kept = { id, message_uid, conversation_id, created_at, seen_at };
  const message = messages.replace({ ...outside.content, ...kept });
  const at = seconds(request.now);
  const isLast = request.company.correspondence.messagesOf(conversation_id).at(-1) === id;
  conversations.replace(
    isLast ? afterMessage(known.conversation, message, at) : { ...known.conversation, updated_at: at },
  );
  return message;
}

/** Adds the message to the conversation that it belongs to, which may begin with it. */
export function takeIn(request: ApiContext, outside: OutsideMessage): Message {
  const { correspondence } = request.company;
  const { thread, reference, beginning, content, isNews } = outside;
  const known = knownConversation(request, thread);
  const conversation =
    known === undefined
      ? startConversation(request, beginning)
      : taggedWith(isNews ? opened(known) : known, beginning.tags);
  if (thread !== undefined) correspondence.note(conversation.id, ...thread);
  const message = addMessage(request, conversation, content);
  if (reference !== undefined) correspondence.note(message.id, ...reference);
  return message;
}
