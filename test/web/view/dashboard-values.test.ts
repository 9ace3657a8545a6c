import { describe, expect, it } from 'vitest';
import type { InstanceStatus, ListStatusJson } from '../../../src/sync/status-types.ts';
import { dashboardValues } from '../../../src/web/view/dashboard-values.ts';
import { at, instanceStatus, listStatus, NOW } from '../status-fixtures.ts';

const RESOURCES = [{ name: 'contacts', title: 'Contacts' }];
const DAY_MS = 86_400_000;

function values(changes: Partial<InstanceStatus>, pace?: number) {
  return dashboardValues(instanceStatus(changes), RESOURCES, { contacts: pace }, NOW);
}

function bar(changes: Partial<ListStatusJson>) {
  return values({ resources: { contacts: listStatus(changes) } }).attributes['contacts.bar'];
}

describe('progress', () => {
  it('is a share of what an earlier run has left, else movement, and full when finished', () => {
    expect(bar({ state: 'running', records: 100, stored: 4_000 })).toEqual({ value: '100', max: '4000' });
    expect(bar({ state: 'running', records: 100, stored: 100 })?.value).toBeNull();
    expect(bar({ records: 0, stored: 0 })).toEqual({ value: '1', max: '1' });
    expect(bar({ started_at: null, finished_at: null })?.value).toBe('0');
  });

  it('hides while nothing moves and no share is known', () => {
    const shown = (changes: Partial<ListStatusJson>) =>
      values({ resources: { contacts: listStatus(changes) } }).show['contacts.bar'];
    expect(shown({ state: 'running', records: 100, stored: 100 })).toBe(true);
    expect(shown({ state: 'waiting', records: 100, stored: 100 })).toBe(false);
    expect(shown({ state: 'waiting', records: 100, stored: 4_000 })).toBe(true);
  });

  it('shows the speed only while a run is watched, else how long it took', () => {
    const running = { resources: { contacts: listStatus({ state: 'running' }) } };
    expect(values(running, 812.4).text['contacts.pace']).toBe('812 records/s');
    expect(values(running).show['contacts.pace']).toBe(false);
    expect(values(running, 0.4).show['contacts.pace']).toBe(false);
    expect(values({}).text['contacts.pace']).toBe('took 1 min');
  });

  it('offers a sync only when there is something to start', () => {
    expect(values({}).show['action.sync']).toBe(true);
    const busy = { resources: { contacts: listStatus({ state: 'waiting' }) } };
    expect(values(busy).show['action.sync']).toBe(false);
  });
});

describe('a resource of an instance that is not active', () => {
  const UNSTARTED = { pages: 0, records: 0, started_at: null, finished_at: null } as const;
  const card = (status: InstanceStatus['status'], changes: Partial<ListStatusJson>) => {
    const { text, show } = values({ status, resources: { contacts: listStatus(changes) } });
    return { label: text['contacts.state'], wait: text['contacts.wait'], show };
  };

  it.each([
    ['paused', { state: 'waiting', waiting_for: 'turn' }, 'Paused', ''],
    ['paused', { state: 'running' }, 'Paused', ''],
    ['paused', {}, 'Complete', ''],
    ['needs_reauthorization', { state: 'waiting', waiting_for: 'turn' }, 'Stopped', 'authorized again'],
    ['needs_reauthorization', {}, 'Complete', ''],
    ['disconnected', { ...UNSTARTED, stored: 180 }, 'Kept', ''],
    ['disconnected', { ...UNSTARTED, stored: 0 }, 'Empty', ''],
  ] as const)('%s, run %j: %s', (status, changes, label, wait) => {
    const shown = card(status, changes);
    expect(shown.label).toBe(label);
    expect(shown.wait).toContain(wait);
    expect(shown.show['contacts.wait']).toBe(wait !== '');
  });

  it('shows neither bar nor progress of a company that is disconnected, nor movement while paused', () => {
    expect(card('disconnected', { ...UNSTARTED, stored: 180 }).show).toMatchObject({
      'contacts.bar': false,
      'contacts.progress': false,
    });
    const started = { state: 'running', records: 100, stored: 100 } as const;
    expect(card('paused', started).show['contacts.bar']).toBe(false);
    expect(card('active', started).show).toMatchObject({ 'contacts.bar': true, 'contacts.progress': true });
  });
});

it('does not call a resource finished that has stopped', () => {
  const ended = (state: ListStatusJson['state']) =>
    values({ resources: { contacts: listStatus({ state }) } }).text['contacts.ended'];
  expect([ended('failed'), ended('idle')]).toEqual(['Stopped', 'Last finished']);
});

it('offers a new authorization where the service refuses, and only there', () => {
  const offered = (changes: Partial<ListStatusJson>) =>
    values({ resources: { contacts: listStatus(changes) } }).show['action.authorize'];
  expect(offered({ state: 'failed', error_kind: 'refused' })).toBe(true);
  expect(offered({ state: 'failed', error_kind: 'credentials' })).toBe(false);
  expect(offered({})).toBe(false);
  expect(offered({ state: 'waiting', waiting_for: 'retry', error_kind: 'refused' })).toBe(true);
  expect(offered({ state: 'waiting', waiting_for: 'turn', error_kind: 'refused' })).toBe(false);
});

it('says what an error means, beside its details', () => {
  const list = listStatus({ error_kind: 'server_error', error: 'It answered 503.' });
  const { text, show } = values({ resources: { contacts: list } });
  expect(text['contacts.error']).toBe('The service failed. There is nothing to do: the app tries again.');
  expect(text['contacts.detail']).toBe('It answered 503.');
  expect([show['contacts.error'], values({}).show['contacts.error']]).toEqual([true, false]);
});

it('calls no list complete that holds deletions, and says how many of how many', () => {
  const held = { held_deletions: 1_060, stored: 2_000 };
  const shown = (status: InstanceStatus['status']) =>
    values({ status, resources: { contacts: listStatus(held) } });
  const { text, attributes } = shown('active');
  expect(text['contacts.state']).toBe('Deletions held');
  expect(attributes['contacts.tone']).toEqual({ 'data-tone': 'warn' });
  expect(text['contacts.held']).toMatch(/^This sync would delete 1,060 of 2,000 contacts\. Nothing was/);
  expect(shown('disconnected').show['contacts.held']).toBe(false);
});

describe('the handler', () => {
  const NONE = { pending: 0, dead_letters: 0, last_error: null, next_try_at: null };
  const shown = (handler: ListStatusJson['handler']) => {
    const { text, show } = values({ resources: { contacts: listStatus({ handler }) } });
    return [text['contacts.handler'], text['contacts.handler-error'], show['contacts.retry']];
  };

  it.each([
    [null, '', '', false],
    [NONE, 'The handler has taken every change.', '', false],
    [{ ...NONE, pending: 1_200 }, '1,200 changes pending for the handler.', '', false],
    [
      { ...NONE, pending: 1, last_error: 'No leads.', next_try_at: at(5_000) },
      '1 change pending for the handler.',
      'The handler failed: No leads. (next try in 5 s)',
      true,
    ],
    // The reason stands with the dead letter.
    [
      { ...NONE, dead_letters: 1, last_error: 'No leads.' },
      '1 dead letter; the handler has taken everything else.',
      '',
      true,
    ],
  ])('%j', (handler, text, error, retry) => {
    expect(shown(handler)).toEqual([text, error, retry]);
  });
});

describe('budget', () => {
  const budget = instanceStatus().budget;
  const shown = (changes: Partial<InstanceStatus['budget']>) => values({ budget: { ...budget, ...changes } });

  it('draws what is left, in words as well', () => {
    const { text, attributes } = shown({ remaining: 30 });
    expect(attributes['budget.arc']).toMatchObject({ 'stroke-dasharray': '25.0 100', visibility: null });
    expect(text['budget.spoken']).toBe('30 of 120 requests left in this window');
    expect(text['budget.window']).toBe('The window starts anew in 31 s.');
  });

  it('is full again after the window has ended, and unknown before the first answer', () => {
    expect(shown({ remaining: 0, reset_at: at(-1) }).text['budget.remaining']).toBe('120');
    const unknown = shown({ limit: null, remaining: null, reset_at: null });
    expect(unknown.text['budget.remaining']).toBe('–');
    expect(unknown.attributes['budget.arc']?.visibility).toBe('hidden');
  });

  it('is free to the limit when nothing but the limit is known, unless requests are held back', () => {
    const ended = { remaining: null, reset_at: null };
    expect(shown(ended).text).toMatchObject({
      'budget.remaining': '120',
      'budget.limit': 'of 120 left',
      'budget.window': 'All requests of the next window are free.',
    });
    expect(shown({ ...ended, blocked_until: at(12_000) }).text['budget.remaining']).toBe('–');
  });

  it('says when the service asked for a break', () => {
    expect(shown({ blocked_until: at(12_000) }).text['budget.window']).toContain('go on in 12 s');
  });
});

describe('tokens', () => {
  it('go by the clock of the service', () => {
    const { attributes, text } = values({
      now: at(300 * DAY_MS),
      token: {
        access_expires_at: at(300 * DAY_MS + 60_000),
        refresh_issued_at: at(250 * DAY_MS),
        refresh_expires_at: at(350 * DAY_MS),
        refresh_due_at: at(349 * DAY_MS),
        rotations: 1,
        refreshes: 2,
      },
    });
    expect(attributes['token.now-mark']).toEqual({ cx: '50.0%' });
    expect(attributes['token.due-mark']).toEqual({ x1: '99.0%', x2: '99.0%' });
    expect(text['token.refresh']).toBe('It will be renewed in 49 days, by itself.');
    expect(text['token.access']).toBe('ends in 1 min');
    expect(text['token.rotations']).toBe('1 time');
  });

  it('draw nothing when there are none', () => {
    const none = values({
      token: {
        access_expires_at: null,
        refresh_issued_at: null,
        refresh_expires_at: null,
        refresh_due_at: null,
        rotations: 0,
        refreshes: 0,
      },
    });
    expect(none.show).toMatchObject({ 'token.line': false, 'token.refresh': false, 'token.access': false });
  });
});
