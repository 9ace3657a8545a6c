import { describe, expect, test } from 'vitest';
import { DATABASES, documentsOf, openTestStore } from './test-store.ts';

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { changes, instances, tokens, whoSees } = store;
  const HANDLER = { whileActive: true };

  test('a disconnect ends tokens, runs, deliveries and access; what was copied stays', async () => {
    const claim = await store.copy(documentsOf(3));
    const key = { ...claim, consumer: 'handler' };
    const held = (await changes.claim(key, HANDLER)) ?? expect.unreachable();
    const entries = await store.feed(claim.list);
    expect((await whoSees(claim.instanceId)).size).toBe(1);

    expect(await tokens.disconnect(claim.instanceId)).toBe(true);
    expect(await instances.find(claim.instanceId)).toMatchObject({
      status: 'disconnected',
      error_kind: null,
    });
    expect(await tokens.find(claim.instanceId)).toBeUndefined();
    expect(await changes.holds(held)).toBe(false);
    expect(await changes.deliver(held, entries)).toBeUndefined();
    expect(await changes.claim(key, HANDLER)).toBeUndefined();
    expect(await whoSees(claim.instanceId)).toEqual(new Set());
    expect(await store.list(claim)).toMatchObject({ stored: 3 });
  });

  test('the browser that disconnects goes on seeing what is left', async () => {
    const id = await store.addInstance();
    const [first = ''] = await whoSees(id);
    await store.addInstance(id);
    expect((await whoSees(id)).size).toBe(2);
    await tokens.disconnect(id, { browserId: first });
    expect(await whoSees(id)).toEqual(new Set([first]));
  });
});
