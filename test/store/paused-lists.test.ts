import { describe, expect, test } from 'vitest';
import { DATABASES, documentsOf, NOW, openTestStore, type TestClaim } from './test-store.ts';

const PAGE_2 = 'https://x.example/contacts?page_token=2';

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { changes, runs } = store;
  const hold = ({ instanceId, resource }: TestClaim, whileActive = true) =>
    changes.claim({ instanceId, resource, consumer: 'handler' }, { whileActive });
  const lags = async ({ instanceId, resource }: TestClaim, whileActive = true) => {
    const all = await changes.lagging('handler', { now: NOW, whileActive });
    return all.some((key) => key.instanceId === instanceId && key.resource === resource);
  };
  const isOpen = async ({ run }: TestClaim) => (await runs.open(NOW)).some((open) => open.run === run);

  test('a paused list writes and delivers nothing, and resumes where it stopped', async () => {
    const claim = await store.claimRun();
    await store.write(claim, documentsOf(1), { next: PAGE_2 });
    const other = await store.claimRun({ instanceId: claim.instanceId, resource: 'conversations' });
    const held = (await hold(claim)) ?? expect.unreachable();
    expect(await runs.pause(claim, NOW)).toBe(true);
    expect(await store.write(claim, ['{"id":"late"}'])).toBeUndefined();
    expect(await store.write(other, documentsOf(1))).toMatchObject({ created: 1 });
    expect(await changes.deliver(held, await store.feed(claim.list))).toBeUndefined();
    expect([await runs.claim(claim), await hold(claim)]).toEqual([undefined, undefined]);
    expect([await isOpen(claim), await lags(claim)]).toEqual([false, false]);
    expect(await runs.start(claim.instanceId, ['contacts'], NOW)).toEqual([]);
    // The search index keeps up with what is there.
    expect([await hold(claim, false), await lags(claim, false)]).toMatchObject([{ list: claim.list }, true]);

    expect(await runs.resume(claim)).toBe(true);
    expect([await isOpen(claim), await lags(claim)]).toEqual([true, true]);
    expect(await runs.claim(claim)).toMatchObject({ id: claim.run, cursor: PAGE_2, pages: 1 });
  });

  test('a list is paused and resumed once, also one that was never read', async () => {
    const key = { instanceId: await store.addInstance(), resource: 'contacts' };
    expect([await runs.resume(key), await runs.pause(key, NOW), await runs.pause(key, NOW + 1)]).toEqual([
      false,
      true,
      false,
    ]);
    expect(await store.list(key)).toMatchObject({ paused_at: NOW, run: undefined });
    const pauses = { intervalMs: 1, outageMs: 1, failedMs: 1 };
    expect(await runs.due('contacts', NOW, pauses)).not.toContain(key.instanceId);
    expect([await runs.resume(key), await runs.resume(key)]).toEqual([true, false]);
    expect(await runs.due('contacts', NOW, pauses)).toContain(key.instanceId);
    await store.tokens.disconnect(key.instanceId);
    const nobody = { instanceId: 'ins_nobody', resource: 'contacts' };
    expect([await runs.pause(key, NOW), await runs.setInterval(key, 5)]).toEqual([false, false]);
    expect([await runs.pause(nobody, NOW), await runs.setInterval(nobody, 5)]).toEqual([false, false]);
  });
});
