import type { Conversation } from '../../data/conversations.ts';
import type { Message, MessageContent } from '../../data/messages.ts';
import { type ApiContext, seconds } from '../request.ts';
import { afterMessage } from './conversation-changes.ts';

/** Adds a message to a conversation, and keeps the conversation as it is given and then is. */
export function addMessage(
  { tables, company, now }: ApiContext,
  conversation: Conversation,
  content: MessageContent,
): Message {
  const { correspondence } = company;
  const message = tables.messages.add((id, index) => ({
    ...content,
    id,
    message_uid: correspondence.uidAt(index),
    conversation_id: conversation.id,
  }));
  correspondence.addMessage(conversation.id, message.id);
  tables.conversations.replace(afterMessage(conversation, message, seconds(now)));
  return message;
}
