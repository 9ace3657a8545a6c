import { expect } from 'vitest';
import type { z } from 'zod';
import type { conversation } from '../../../src/contract/api/conversations.ts';
import type { message } from '../../../src/contract/api/messages.ts';
import { startOpen } from './routes.ts';
import { at } from './test-sandbox.ts';

export type Message = z.infer<typeof message> & { _links: { related: { conversation: string } } };

export type Conversation = z.infer<typeof conversation> & {
  recipient: { _links: { related: { contact: string } }; name: string };
  last_message: { excerpt: string; is_inbound: boolean; created_at: number };
};

interface List<T> {
  _pagination: { next: string | null };
  _results: T[];
}

/** Method, path and body. */
export type Request = readonly [method: string, path: string, body?: unknown];

/** A contact who writes. */
export const ann = { handle: 'Ann-from-chat', name: 'Ann Archer' };

export function idsOf(records: readonly { id: string }[]): string[] {
  return records.map(({ id }) => id);
}

/** A company that nothing limits, with what tests of conversations and messages need of it. */
export async function startMessaging() {
  const { service, company, token, read } = await startOpen();
  const other = await service.company();
  const list = async <T>(path: string, as = token) => (await read<List<T>>(path, as))._results;
  const conversations = await list<Conversation>('/conversations');
  const send = <T = Conversation>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ) => service.call<T>(method, path, token, body, headers);
  /** The message with this id or `message_uid`, and its conversation. */
  const found = async (id: string) => {
    const document = await read<Message>(`/messages/${id}`);
    return {
      message: document,
      conversation: await read<Conversation>(document._links.related.conversation),
    };
  };
  const channel = at(company.channels, 0);
  return {
    service,
    company,
    token,
    read,
    list,
    send,
    found,
    conversations,
    conversation: at(conversations, 0),
    /** What the pages of a list hold, to its end. */
    pages: async <T>(path: string, as = token) => {
      const pages: T[][] = [];
      for (let next: string | null = path; next !== null; ) {
        const page: List<T> = await read(next, as);
        pages.push(page._results);
        next = page._pagination.next;
      }
      return pages;
    },
    /** Sends requests, which must all get this status. */
    expectStatus: async (status: number, requests: readonly Request[], as = token) => {
      for (const [method, path, body] of requests) {
        const answer = await service.call(method, path, as, method === 'GET' ? undefined : body);
        expect([method, path, body, answer.status]).toEqual([method, path, body, status]);
      }
    },
    messagesOf: (id: string) => list<Message>(`/conversations/${id}/messages`),
    /** Sends a message that must be accepted, and answers what became of it. */
    take: async (method: string, path: string, body: unknown) => {
      const answer = await send<{ status: string; message_uid: string }>(method, path, body);
      expect([answer.status, answer.body]).toEqual([
        202,
        { status: 'accepted', message_uid: expect.any(String) },
      ]);
      return found(answer.body.message_uid);
    },
    counts: async () => (await service.state()).companies.find(({ id }) => id === company.id)?.counts,
    incoming: `/channels/${channel}/incoming_messages`,
    inbound: `/channels/${channel}/inbound_messages`,
    outbound: `/channels/${channel}/outbound_message`,
    external: (thread: string, id: string) =>
      `/channels/${channel}/conversations/${encodeURIComponent(thread)}/messages/${encodeURIComponent(id)}`,
    link: at(company.links, 0),
    channel,
    otherChannel: at(company.channels, 1),
    inbox: at(company.inboxes, 0),
    otherInbox: at(company.inboxes, 1),
    privateInbox: at(company.inboxes, 2),
    tag: at(company.tags, 0),
    otherTag: at(company.tags, 1),
    privateTag: at(company.tags, 4),
    teammate: at(company.teammates, 0),
    /** A channel of the private inbox. */
    addPrivateChannel: async (type = 'custom') =>
      (await send<{ id: string }>('POST', `/inboxes/${at(company.inboxes, 2)}/channels`, { type })).body.id,
    /** Ids of another company's things. */
    foreign: {
      tag: at(other.tags, 0),
      link: at(other.links, 0),
      channel: at(other.channels, 0),
      inbox: at(other.inboxes, 0),
      teammate: at(other.teammates, 0).id,
    },
  };
}
