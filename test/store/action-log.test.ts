import { describe, expect, test } from 'vitest';
import { DATABASES, NOW, openTestStore } from './test-store.ts';

const DAY_MS = 24 * 60 * 60_000;

describe.each(DATABASES)('on %s', async (kind) => {
  const { actions } = await openTestStore(kind);

  test('actions are listed with the newest first, and kept for a year', async () => {
    const pause = { resource: 'contacts', record: null, action: 'pause', by: 'administrator' } as const;
    const replay = { resource: 'contacts', record: '#7', action: 'replay', by: 'operator' } as const;
    await actions.add({ instanceId: 'ins_1', ...pause }, NOW - 366 * DAY_MS);
    await actions.add({ instanceId: 'ins_2', ...pause }, NOW - 364 * DAY_MS);
    await actions.add({ instanceId: 'ins_1', ...replay }, NOW);
    const all = await actions.list({ limit: 9 });
    expect(all.map(({ instanceId, at }) => [instanceId, at])).toEqual([
      ['ins_1', NOW],
      ['ins_2', NOW - 364 * DAY_MS],
      ['ins_1', NOW - 366 * DAY_MS],
    ]);
    expect(await actions.list({ limit: 1 })).toEqual(all.slice(0, 1));
    expect(await actions.list({ instanceId: 'ins_2', limit: 9 })).toMatchObject([pause]);
    await actions.removeOld(NOW);
    expect(await actions.list({ limit: 9 })).toEqual(all.slice(0, 2));
    expect(all[0]).toEqual({
      id: expect.any(Number),
      instanceId: 'ins_1',
      company: null,
      ...replay,
      at: NOW,
    });
    expect(await actions.pauses(['ins_1', 'ins_2'])).toMatchObject([
      { instanceId: 'ins_2', by: 'administrator' },
    ]);
  });
});
