import { describe, expect, it } from 'vitest';
import type { InstanceStatus } from '../../../src/sync/status-types.ts';
import { budgetFacts, type Fact, tokenFacts, tokenFailure } from '../../../src/web/view/facts-view.ts';
import { at, instanceStatus, NOW, runJson } from '../status-fixtures.ts';

const DAY_MS = 86_400_000;

function said(facts: Fact[], label: string): string | null | undefined {
  const { text, at: moment } = facts.find((fact) => fact.label === label) ?? {};
  return text ? text.before + (text.moment?.text ?? '') : moment;
}

describe('the budget', () => {
  const shown = (changes: Partial<InstanceStatus['budget']>) =>
    budgetFacts(
      { ...instanceStatus().budget, ...changes },
      [runJson({ refused: 2 }), runJson({ refused: 1 })],
      NOW,
    );

  it.each([
    [{ remaining: 30 }, '30 of 120 left in this window'],
    [{ remaining: 0, reset_at: at(-1) }, '120 of 120 left in this window'],
    [{ remaining: null, reset_at: null }, '120 of 120 left in this window'],
    [{ limit: null, remaining: null, reset_at: null }, 'Known after the first answer of the service.'],
    [{ remaining: null, reset_at: null, blocked_until: at(12_000) }, 'The service asked for a break.'],
  ])('says what is left: %j', (changes, text) => {
    expect(said(shown(changes), 'Requests')).toBe(text);
  });

  it('counts what was refused, and names the burst if it is known', () => {
    expect(said(shown({}), 'Refused with 429')).toBe('3 requests of the syncs in the history');
    expect(said(shown({}), 'Burst')).toBe('60 extra requests in reserve');
    expect(said(shown({ burst_remaining: null }), 'Burst')).toBeUndefined();
  });
});

describe('the tokens', () => {
  const NO_TOKEN = {
    access_expires_at: null,
    refresh_issued_at: null,
    refresh_expires_at: null,
    refresh_due_at: null,
  };

  it('go by the clock of the service', () => {
    const token = { ...instanceStatus().token, access_expires_at: at(300 * DAY_MS + 60_000), rotations: 1 };
    const facts = tokenFacts(instanceStatus({ now: at(300 * DAY_MS), token }));
    expect(said(facts, 'Access token')).toBe('ends in 1 min');
    expect(said(facts, 'Refresh token replaced')).toBe('1 time');
    expect(said(facts, 'Refresh token ends')).toBe(at(153 * DAY_MS));
    const none = tokenFacts(instanceStatus({ token: { ...token, ...NO_TOKEN } }));
    expect(said(none, 'Access token')).toBe('renewed with the next request');
  });

  it('say that they cannot be renewed, of an instance that needs them', () => {
    const failureOf = (failures: number, status: InstanceStatus['status'] = 'active') =>
      tokenFailure(instanceStatus({ status, token: { ...instanceStatus().token, failures } }));
    expect(failureOf(0)).toBe('');
    expect(failureOf(1)).toContain('The last try to renew the authorization failed.');
    expect(failureOf(3, 'paused')).toContain('The last 3 tries to renew the authorization failed.');
    expect(failureOf(3, 'disconnected')).toBe('');
  });
});
