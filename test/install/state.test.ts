import { expect, test } from 'vitest';
import type { InstallSession } from '../../src/install/install-types.ts';
import { issueState, STATE_LIFETIME_MS, spendState } from '../../src/install/state.ts';

const NOW = Date.UTC(2026, 2, 1, 12, 0, 0);

test('a state is 256 bits, and never the same', () => {
  const states = Array.from({ length: 200 }, () => issueState({}, NOW));
  for (const state of states) {
    expect(state).toMatch(/^[\w-]+$/);
    expect(Buffer.from(state, 'base64url').length).toBe(32);
  }
  expect(new Set(states).size).toBe(200);
});

test('it is good once', () => {
  const session: InstallSession = {};
  const state = issueState(session, NOW);
  expect(spendState(session, state, NOW + 1_000)).toBe(true);
  expect(spendState(session, state, NOW + 1_000)).toBe(false);
  expect(session.pendingInstalls).toEqual([]);
});

test('it is good for ten minutes, to the millisecond', () => {
  expect(STATE_LIFETIME_MS).toBe(10 * 60_000);
  for (const [age, good] of [
    [0, true],
    [10 * 60_000 - 1, true],
    [10 * 60_000, false],
    [24 * 60 * 60_000, false],
  ] as const) {
    const session: InstallSession = {};
    expect(spendState(session, issueState(session, NOW), NOW + age)).toBe(good);
  }
});

test('one that comes late is spent all the same', () => {
  const session: InstallSession = {};
  const state = issueState(session, NOW);
  expect(spendState(session, state, NOW + STATE_LIFETIME_MS)).toBe(false);
  expect(spendState(session, state, NOW)).toBe(false);
});

test('it is good, too, where the clock was set back meanwhile, by less than its ten minutes', () => {
  for (const [aheadMs, good] of [
    [1, true],
    [10 * 60_000 - 1, true],
    [10 * 60_000, false],
  ] as const) {
    const session: InstallSession = {};
    expect(spendState(session, issueState(session, NOW), NOW - aheadMs)).toBe(good);
  }
});

test('another session’s is none, and stays good where it belongs', () => {
  const [mine, theirs]: InstallSession[] = [{}, {}];
  const state = issueState(mine ?? {}, NOW);
  issueState(theirs ?? {}, NOW);
  expect(spendState(theirs ?? {}, state, NOW)).toBe(false);
  expect(spendState({}, state, NOW)).toBe(false);
  expect(spendState(mine ?? {}, state, NOW)).toBe(true);
});

test.each(['', 'x', 'undefined', '__proto__'])('%j is none', (state) => {
  const session: InstallSession = {};
  issueState(session, NOW);
  expect(spendState(session, state, NOW)).toBe(false);
  expect(session.pendingInstalls?.length).toBe(1);
});

test('part of one, or one with something added, is none', () => {
  const session: InstallSession = {};
  const state = issueState(session, NOW);
  expect(spendState(session, state.slice(0, -1), NOW)).toBe(false);
  expect(spendState(session, `${state}A`, NOW)).toBe(false);
  expect(spendState(session, state.toLowerCase(), NOW)).toBe(false);
  expect(spendState(session, state, NOW)).toBe(true);
});

test('several tabs may be under way, ten at most: the oldest makes room', () => {
  const session: InstallSession = {};
  const states = Array.from({ length: 12 }, (_, index) => issueState(session, NOW + index));
  expect(session.pendingInstalls?.length).toBe(10);
  expect(states.map((state) => spendState(session, state, NOW + 100))).toEqual([
    false,
    false,
    ...Array(10).fill(true),
  ]);
});

test('what has ended is cleared away by the next one', () => {
  const session: InstallSession = {};
  issueState(session, NOW);
  issueState(session, NOW + 1);
  issueState(session, NOW + STATE_LIFETIME_MS);
  expect(session.pendingInstalls?.map(({ createdAt }) => createdAt)).toEqual([
    NOW + 1,
    NOW + STATE_LIFETIME_MS,
  ]);
});
