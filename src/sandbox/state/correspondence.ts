import { IdSeries, type Owner } from '../data/ids.ts';
import { MESSAGES_EACH } from '../data/messages.ts';

/** What a record can be known by, beside its id. */
export type KnownBy =
  | 'conversation reference'
  | 'external conversation'
  | 'external message'
  | 'imported thread'
  | 'imported message'
  | 'contact handle';

/**
 * Which messages belong to a company's conversations, and which records it knows by the references of other systems.
 * Generated messages follow from their conversation's index, so that this grows with what is added alone.
 */
export class Correspondence {
  /** Ids of records by what else they are known by, and of added messages by their conversation; plain data. */
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

  /** The id that was noted last; that record may be gone since. */
  find(...known: [what: KnownBy, ...parts: string[]]): string | undefined {
    return this.state.known.get(JSON.stringify(known));
  }

  /** Notes what else a record is known by. */
  note(id: string, ...known: [what: KnownBy, ...parts: string[]]): void {
    this.state.known.set(JSON.stringify(known), id);
  }
}
