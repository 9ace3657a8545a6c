import type { Conversation } from '../../data/conversations.ts';
import { Problem } from '../../http/answer.ts';

/** The words of a query, in lower case. Throws a {@link Problem} (400) when there is none. */
export function wordsOf(query: string): string[] {
  const words = query
    .normalize('NFC')
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) throw new Problem(400, 'The query has no words.');
  return words;
}

/** Whether all words, or words that they are part of, occur in what a list shows of a conversation. */
export function hasWords(conversation: Conversation, words: readonly string[]): boolean {
  const { subject, recipient, tags, last_message } = conversation;
  const text = [
    subject,
    recipient.name,
    recipient.handle,
    last_message.excerpt,
    ...tags.map(({ name }) => name),
  ]
    .join('\n')
    .toLowerCase();
  return words.every((word) => text.includes(word));
}
