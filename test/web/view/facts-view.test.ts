import { describe, expect, it } from 'vitest';
import type { InstanceStatus } from '../../../src/sync/status-types.ts';
import { budgetView, tokenView } from '../../../src/web/view/facts-view.ts';
import { at, instanceStatus, NOW } from '../status-fixtures.ts';

const DAY_MS = 86_400_000;

describe('budget', () => {
  const shown = (changes: Partial<InstanceStatus['budget']>) =>
    budgetView({ ...instanceStatus().budget, ...changes }, NOW);

  it('draws what is left, in words as well', () => {
    expect(shown({ remaining: 30 })).toMatchObject({
      arc: { length: '25.0', tone: 'good', isShown: true },
      spoken: '30 of 120 requests left in this window',
      window: '',
    });
    expect(shown({ remaining: 20 }).arc.tone).toBe('wait');
  });

  it.each([
    [{ remaining: 0, reset_at: at(-1) }, '120', ''],
    [{ remaining: null, reset_at: null }, '120', ''],
    [{ limit: null, remaining: null, reset_at: null }, '–', 'Known after the first answer of the service.'],
    [{ remaining: null, reset_at: null, blocked_until: at(12_000) }, '–', 'The service asked for a break.'],
  ])('says what is left: %j', (changes, remaining, window) => {
    expect(shown(changes)).toMatchObject({ remaining, window });
  });
});

describe('tokens', () => {
  it('go by the clock of the service', () => {
    const token = {
      access_expires_at: at(300 * DAY_MS + 60_000),
      refresh_issued_at: at(250 * DAY_MS),
      refresh_expires_at: at(350 * DAY_MS),
      refresh_due_at: at(349 * DAY_MS),
      rotations: 1,
      refreshes: 2,
      failures: 0,
    };
    expect(tokenView(instanceStatus({ now: at(300 * DAY_MS), token }))).toMatchObject({
      isDrawable: true,
      now: '50.0%',
      due: '99.0%',
      access: { before: 'ends ', moment: { text: 'in 1 min' } },
      rotations: '1 time',
    });
  });

  it('say that they cannot be renewed', () => {
    const failureOf = (failures: number) =>
      tokenView(instanceStatus({ token: { ...instanceStatus().token, failures } })).failure;
    expect(failureOf(0)).toBe('');
    expect(failureOf(1)).toContain('The last 1 try to renew it failed.');
    expect(failureOf(3)).toContain('The last 3 tries to renew it failed.');
  });

  it('draw nothing when there are none', () => {
    const none = {
      access_expires_at: null,
      refresh_issued_at: null,
      refresh_expires_at: null,
      refresh_due_at: null,
    };
    const view = tokenView(instanceStatus({ token: { ...none, rotations: 0, refreshes: 0, failures: 0 } }));
    expect(view).toMatchObject({ isDrawable: false, now: '0%' });
  });
});
