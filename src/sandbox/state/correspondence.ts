import { IdSeries, type Owner } from '../data/ids.ts';
import { messageIndexes, messageUids } from '../data/messages.ts';

/** What was added since the start: plain data. */
export interface CorrespondenceState {
  /** Ids of records by what else they are known by. */
  known: Map<string, string>;
  /** Ids of the messages that were added to a conversation, by its id. */
  added: Map<string, string[]>;
}

/** What a record can be known by, beside its id. */
export type KnownBy =
  | 'conversation reference'
  | 'external conversation'
  | 'external message'
  | 'imported thread'
  | 'imported message'
  | 'contact handle';

function keyOf(what: KnownBy, parts: readonly string[]): string {
  return JSON.stringify([what, ...parts]);
}

/**
 * Which messages belong to a company's conversations, and which records it knows by the references of other systems.
 * What concerns generated records is made from their index, so that this grows with what is added alone.
 */
export class Correspondence {
  readonly #conversations: number;
  readonly #conversationIds: IdSeries;
  readonly #messageIds: IdSeries;
  readonly #uids: IdSeries;
  #state: CorrespondenceState = { known: new Map(), added: new Map() };

  /** @param conversations how many of them were generated */
  constructor(owner: Owner, conversations: number) {
    this.#conversations = conversations;
    this.#conversationIds = new IdSeries('cnv', owner);
    this.#messageIds = new IdSeries('msg', owner);
    this.#uids = messageUids(owner);
  }

  /** Plain data; what is set is taken over, not copied. */
  get state(): CorrespondenceState {
    return this.#state;
  }

  set state(state: CorrespondenceState) {
    this.#state = state;
  }

  /** The ids of a conversation's messages, in the order in which they were added. */
  messagesOf(conversationId: string): string[] {
    const index = this.#conversationIds.index(conversationId);
    const generated = index === undefined || index >= this.#conversations ? [] : messageIndexes(index);
    return [
      ...generated.map((one) => this.#messageIds.id(one)),
      ...(this.#state.added.get(conversationId) ?? []),
    ];
  }

  /** Notes that a message belongs to a conversation. */
  addMessage(conversationId: string, messageId: string): void {
    const added = this.#state.added.get(conversationId);
    if (added === undefined) this.#state.added.set(conversationId, [messageId]);
    else added.push(messageId);
  }

  /** The `message_uid` of the message with this index. */
  uidAt(index: number): string {
    return this.#uids.id(index);
  }

  /** The id of the message with this `message_uid`; any other text as it is. */
  messageId(idOrUid: string): string {
    const index = this.#uids.index(idOrUid);
    return index === undefined ? idOrUid : this.#messageIds.id(index);
  }

  /** The id that was noted last; that record may be gone since. */
  find(what: KnownBy, ...parts: string[]): string | undefined {
    return this.#state.known.get(keyOf(what, parts));
  }

  /** Notes what else a record is known by. */
  note(id: string, what: KnownBy, ...parts: string[]): void {
    this.#state.known.set(keyOf(what, parts), id);
  }
}
