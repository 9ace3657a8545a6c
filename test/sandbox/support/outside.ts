import { expect } from 'vitest';
import { startMessaging } from './messaging.ts';

/** A contact who writes. */
export const ann = { handle: 'Ann-from-chat', name: 'Ann Archer' };

/** As `startMessaging`, with the routes by which messages of other systems come in. */
export async function startOutside() {
  const parts = await startMessaging();
  const { send, found, channel, service } = parts;
  return {
    ...parts,
    /** Sends a message that must be accepted, and answers what became of it. */
    take: async (method: string, path: string, body: unknown) => {
      const answer = await send<{ status: string; message_uid: string }>(method, path, body);
      expect(answer.status, JSON.stringify(answer.body)).toBe(202);
      expect(answer.body).toEqual({ status: 'accepted', message_uid: expect.any(String) });
      return found(answer.body.message_uid);
    },
    counts: async () => {
      const counts = (await service.state()).companies.find(({ id }) => id === parts.company.id)?.counts;
      return counts as Record<string, number> | undefined;
    },
    incoming: `/channels/${channel}/incoming_messages`,
    inbound: `/channels/${channel}/inbound_messages`,
    outbound: `/channels/${channel}/outbound_message`,
    external: (conversation: string, message: string) =>
      `/channels/${channel}/conversations/${encodeURIComponent(conversation)}/messages/${encodeURIComponent(message)}`,
  };
}
