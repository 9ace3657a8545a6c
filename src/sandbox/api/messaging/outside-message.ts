import type { Inbox } from '../../data/inboxes.ts';
import type { Message, Recipient } from '../../data/messages.ts';
import type { Tag } from '../../data/tags.ts';
import { Problem } from '../../http/answer.ts';
import { addressees, contentOf, type MessageBody } from './message-content.ts';
import type { OutsideMessage, Reference } from './take-in.ts';

interface Sender {
  handle: string;
  name?: string | undefined;
}

/** What is said of a message that another system brings. */
interface Told {
  inbox: Inbox;
  type: string;
  /** The company's end of the message. */
  ownHandle: string;
  body: MessageBody & { sender?: Sender | undefined };
  isInbound: boolean;
  author: Message['author'];
  thread: Reference | undefined;
  reference: Reference | undefined;
  /** Who its conversation is with already. */
  recipient: string | undefined;
  tags: readonly Tag[];
  /** When it was made, in seconds since 1970. */
  at: number;
  /** Of the past: it opens no conversation. */
  isOld?: true;
}

function fromOf({ handle, name }: Sender): Recipient {
  return { handle, role: 'from', ...(name === undefined ? {} : { name }) };
}

/** Who the conversation is with. Throws a {@link Problem} (422) when nothing tells. */
function contactIn({ body, isInbound, recipient }: Told): Sender {
  if (isInbound && body.sender !== undefined) return body.sender;
  const handle = body.to?.[0] ?? recipient;
  if (handle === undefined) throw new Problem(422, 'to: is needed for a message that starts a conversation.');
  return { handle };
}

/** Puts a message together: from its sender, or else the company, to those that it names, or else the company. */
export function outsideMessage(told: Told): OutsideMessage {
  const { inbox, type, ownHandle, body, isInbound, author, thread, reference, tags, at } = told;
  const contact = contactIn(told);
  const content = contentOf(body);
  const named = addressees(body);
  const others: Recipient[] =
    named.length > 0 ? named : [{ handle: isInbound ? ownHandle : contact.handle, role: 'to' }];
  return {
    thread,
    reference,
    beginning: {
      inbox,
      handle: contact.handle,
      name: contact.name,
      role: isInbound ? 'from' : 'to',
      subject: content.subject,
      status: told.isOld ? 'archived' : 'unassigned',
      tags,
      at,
    },
    content: {
      ...content,
      type,
      is_inbound: isInbound,
      delivery: null,
      author: isInbound ? null : author,
      recipients: [fromOf(body.sender ?? { handle: ownHandle }), ...others],
      seen_at: null,
      created_at: at,
    },
    isNews: isInbound && !told.isOld,
  };
}
