import { IdSeries, type Owner } from '../data/ids.ts';
import { MESSAGES_EACH } from '../data/messages.ts';

/** References of a record beside its id. */
export type KnownBy =
  | 'conversation reference'
  | 'external conversation'
  | 'external message'
  | 'imported thread'
  | 'imported message'
  | 'contact handle';

/**
 * Messages of conversations, and records by the references of other systems. Generated messages follow from the index
 * of their conversation, so only added messages take memory.
 */
export class Correspondence {
  /** Ids of records by reference, and of added messages by conversation; plain data. */
  state = { known: new Map<string, string>(), added: new Map<string, string[]>() };
  readonly #generated: number;
  readonly #conversationIds: IdSeries;
  readonly #messageIds: IdSeries;

  /** @param generated how many conversations were generated */
  constructor(owner: Owner, generated: number) {
    this.#generated = generated;
    this.#conversationIds = new IdSeries('cnv', owner);
    this.#messageIds = new IdSeries('msg', owner);
  }

  /** The ids of a conversation's messages, in the order in which they were added. */
  messagesOf(conversationId: string): string[] {
    const added = this.state.added.get(conversationId) ?? [];
    const index = this.#conversationIds.index(conversationId);
    if (index === undefined || index >= this.#generated) return added;
    const first = index * MESSAGES_EACH;
    const generated = Array.from({ length: MESSAGES_EACH }, (_, turn) => this.#messageIds.id(first + turn));
    return [...generated, ...added];
  }

  /** Notes that a message belongs to a conversation. */
  addMessage(conversationId: string, messageId: string): void {
    const { added } = this.state;
    added.set(conversationId, [...(added.get(conversationId) ?? []), messageId]);
  }

  /** The last id for a reference. That record may be deleted. */
  find(...known: [what: KnownBy, ...parts: string[]]): string | undefined {
    return this.state.known.get(JSON.stringify(known));
  }

  /** Adds a reference of a record. */
  note(id: string, ...known: [what: KnownBy, ...parts: string[]]): void {
    this.state.known.set(JSON.stringify(known), id);
  }
}
