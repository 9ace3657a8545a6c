import { expect, test } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { collectFigures } from '../../src/sync/figures.ts';
import { NOW, openTestStore } from '../store/test-store.ts';
import { installInstance } from '../support/install-instance.ts';

const HOUR_MS = 3_600_000;

test('a refresh token is overdue from two hours after it was first to be renewed', async () => {
  const { db } = await openTestStore();
  const add = (id: string, dueAt: number) =>
    installInstance(db, { id }, NOW, {
      refresh_issued_at: dueAt - HOUR_MS,
      refresh_due_at: dueAt,
      refreshed_at: dueAt - HOUR_MS,
    });
  const overdueAt = async (now: number) => {
    const figures = await collectFigures({ db, clock: new ServiceClock(() => now), resources: [] });
    return figures.refreshTokensOverdue;
  };
  await add('ins_1', NOW);
  expect(await overdueAt(NOW + 2 * HOUR_MS - 1)).toBe(0);
  expect(await overdueAt(NOW + 2 * HOUR_MS)).toBe(1);
});
