import { GUARDS } from '../../../src/contract/guards.ts';
import { at, startFrozen } from './test-sandbox.ts';

export interface Message {
  _links: { self: string; related: { conversation: string } };
  id: string;
  message_uid: string;
  conversation_id: string;
  type: string;
  is_inbound: boolean;
  is_draft: boolean;
  error_type: string | null;
  author: { id: string; name: string } | null;
  recipients: { handle: string; role: string; name?: string }[];
  subject: string | null;
  blurb: string;
  body: string;
  text: string;
  metadata: Record<string, unknown>;
  is_seen: boolean;
  seen_at: number | null;
  created_at: number;
}

export interface Conversation {
  _links: { self: string };
  id: string;
  subject: string;
  status: string;
  assignee: { id: string } | null;
  recipient: { _links: { related: { contact: string | null } }; name: string; handle: string; role: string };
  inbox: { id: string; name: string };
  tags: { id: string; name: string }[];
  links: { id: string; name: string }[];
  custom_fields: Record<string, unknown>;
  reminders?: { teammate_id: string; scheduled_at: number }[];
  last_message: { excerpt: string; is_inbound: boolean; created_at: number };
  is_private: boolean;
  created_at: number;
  updated_at: number;
}

export interface List<T> {
  _pagination: { next: string | null };
  _results: T[];
}

/** Guards that stop no test that is about something else. */
const WIDE = { resource: { ...GUARDS.resource, limit: 1_000 } };

/**
 * A company that no main limit stops, with what tests of conversations and messages need of it.
 *
 * @param guards as the contract has them when empty; wide open when left out
 */
export async function startMessaging(guards: Partial<typeof WIDE> = WIDE) {
  const service = await startFrozen({ guards });
  const company = await service.company({ plan: 'enterprise', addon_rpm: 1_000 });
  const token = at(company.api_tokens, 0).token;
  const read = async <T>(path: string, as = token) => (await service.call<T>('GET', path, as)).body;
  const conversations = (await read<List<Conversation>>('/conversations'))._results;
  /** Sends a body with a method, and answers status and document. */
  const send = <T = Conversation>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ) => service.call<T>(method, path, token, body, headers);
  return {
    service,
    company,
    token,
    read,
    send,
    conversations,
    conversation: at(conversations, 0),
    statusOf: async (method: string, path: string, body?: unknown) => (await send(method, path, body)).status,
    messagesOf: async (conversation: string) =>
      (await read<List<Message>>(`/conversations/${conversation}/messages`))._results,
    /** The message with this id or `message_uid`, and its conversation. */
    found: async (message: string) => {
      const document = await read<Message>(`/messages/${message}`);
      return {
        message: document,
        conversation: await read<Conversation>(document._links.related.conversation),
      };
    },
    channel: at(company.channels, 0),
    otherChannel: at(company.channels, 1),
    inbox: at(company.inboxes, 0),
    otherInbox: at(company.inboxes, 1),
    privateInbox: at(company.inboxes, 2),
    tag: at(company.tags, 0),
    otherTag: at(company.tags, 1),
    privateTag: at(company.tags, 4),
    teammate: at(company.teammates, 0),
    /** Ids of another company's things. */
    foreign: await (async () => {
      const other = await service.company();
      const as = at(other.api_tokens, 0).token;
      const first = at((await read<List<Conversation>>('/conversations', as))._results, 0);
      const message = at((await read<List<Message>>(`/conversations/${first.id}/messages`, as))._results, 0);
      return {
        conversation: first.id,
        message: message.id,
        tag: at(other.tags, 0),
        channel: at(other.channels, 0),
        inbox: at(other.inboxes, 0),
        teammate: at(other.teammates, 0).id,
      };
    })(),
  };
}
