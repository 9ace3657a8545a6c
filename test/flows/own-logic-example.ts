import type { OwnLogic } from '../../src/sync/own-logic.ts';

// The README shows this: what it says is what runs here.
export const onRecords: OwnLogic = async ({ resource, created }, { service }) => {
  if (resource !== 'conversations') return;
  const refunds = created.filter(({ subject }) => /refund/i.test(String(subject)));
  if (refunds.length === 0) return;
  for await (const tag of service.each.listTags()) {
    if (tag.name !== 'Refund') continue;
    await Promise.all(
      refunds.map(({ id }) =>
        service.addConversationTags({ conversation_id: String(id) }, { tag_ids: [tag.id] }),
      ),
    );
  }
};
