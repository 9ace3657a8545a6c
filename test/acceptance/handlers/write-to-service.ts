import type { Call } from '../support/handler-report.ts';

/** What the test says to the handler, in the environment. */
export interface WriteTargets {
  tag: string;
  teammate: string;
  channel: string;
}

/** Messages that each contact sends by the channel. */
export const MESSAGES = 8;

type Write = (values: object, body: object, options: { key: string }) => Promise<void>;

const { tag, teammate, channel }: WriteTargets = JSON.parse(process.env.TEST_TARGETS ?? '{}');

/**
 * Writes four times to each conversation, in this order: tag, reply, assignee, status. For each contact it writes messages
 * to one channel, more at once than their guard lets through.
 */
export async function onChanges({ resource, changes }: Call) {
  return async (_transaction: unknown, outbox: Record<string, Write>) => {
    const {
      addConversationTags,
      replyToConversation,
      assignConversation,
      updateConversation,
      putExternalMessage,
    } = outbox;
    for (const { id, document } of changes) {
      const { subject, handles } = (document ?? {}) as { subject?: string; handles?: [{ handle: string }] };
      if (resource === 'conversations' && subject !== undefined && subject !== FROM_ELSEWHERE) {
        const values = { conversation_id: id };
        await addConversationTags?.(values, { tag_ids: [tag] }, { key: `tag:${id}` });
        await replyToConversation?.(values, { body: 'Hello' }, { key: `reply:${id}` });
        await assignConversation?.(values, { assignee_id: teammate }, { key: `assign:${id}` });
        await updateConversation?.(values, { custom_fields: { seen: true } }, { key: `update:${id}` });
      }
      for (let at = 0; resource === 'contacts' && handles !== undefined && at < MESSAGES; at++) {
        const values = { channel_id: channel, conv_ext_id: id, message_ext_id: `m${at}` };
        const body = { subject: FROM_ELSEWHERE, body: 'Hello', sender: handles[0] };
        await putExternalMessage?.(values, body, { key: `message:${id}:${at}` });
      }
    }
  };
}

/** The subject of conversations that the messages make. */
const FROM_ELSEWHERE = 'From elsewhere';
