import { describe, expect, it } from 'vitest';
import { CREDENTIALS_REFUSED } from '../../../src/auth/tokens.ts';
import type { InstanceStatus, ResourceStatus } from '../../../src/sync/status-types.ts';
import { dashboardValues } from '../../../src/web/view/dashboard-values.ts';
import { at, instanceStatus, NOW, resourceStatus } from '../status-fixtures.ts';

const RESOURCES = [{ name: 'contacts', title: 'Contacts' }];
const DAY_MS = 86_400_000;

function values(changes: Partial<InstanceStatus>, pace?: number) {
  return dashboardValues(instanceStatus(changes), RESOURCES, { contacts: pace }, NOW);
}

function bar(changes: Partial<ResourceStatus>) {
  return values({ resources: { contacts: resourceStatus(changes) } }).attributes['contacts.bar'];
}

describe('progress', () => {
  it('is a share of what an earlier run has left, else movement, and full when finished', () => {
    expect(bar({ state: 'running', records: 100, stored: 4_000 })).toEqual({ value: '100', max: '4000' });
    expect(bar({ state: 'running', records: 100, stored: 100 })?.value).toBeNull();
    expect(bar({ records: 0, stored: 0 })).toEqual({ value: '1', max: '1' });
    expect(bar({ started_at: null, finished_at: null })?.value).toBe('0');
  });

  it('hides while nothing moves and no share is known', () => {
    const shown = (changes: Partial<ResourceStatus>) =>
      values({ resources: { contacts: resourceStatus(changes) } }).show['contacts.bar'];
    expect(shown({ state: 'running', records: 100, stored: 100 })).toBe(true);
    expect(shown({ state: 'waiting', records: 100, stored: 100 })).toBe(false);
    expect(shown({ state: 'waiting', records: 100, stored: 4_000 })).toBe(true);
  });

  it('shows the speed only while a run is watched, else how long it took', () => {
    const running = { resources: { contacts: resourceStatus({ state: 'running' }) } };
    expect(values(running, 812.4).text['contacts.pace']).toBe('812 records/s');
    expect(values(running).show['contacts.pace']).toBe(false);
    expect(values(running, 0.4).show['contacts.pace']).toBe(false);
    expect(values({}).text['contacts.pace']).toBe('took 1 min');
  });

  it('offers a sync only when there is something to start', () => {
    expect(values({}).show['action.sync']).toBe(true);
    const busy = { resources: { contacts: resourceStatus({ state: 'waiting' }) } };
    expect(values(busy).show['action.sync']).toBe(false);
  });
});

describe('a resource of an instance that is not active', () => {
  const UNSTARTED = { pages: 0, records: 0, started_at: null, finished_at: null } as const;
  const card = (status: InstanceStatus['status'], changes: Partial<ResourceStatus>) => {
    const { text, show } = values({ status, resources: { contacts: resourceStatus(changes) } });
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
  const ended = (state: ResourceStatus['state']) =>
    values({ resources: { contacts: resourceStatus({ state }) } }).text['contacts.ended'];
  expect([ended('failed'), ended('idle')]).toEqual(['Stopped', 'Last finished']);
});

it('offers a new authorization where the service forbids a list or refuses to renew the access, and only there', () => {
  const offered = (changes: Partial<ResourceStatus>) =>
    values({ resources: { contacts: resourceStatus(changes) } }).show['action.authorize'];
  expect(offered({ state: 'failed', error: 'The service refused the request (403: No).' })).toBe(true);
  expect(offered({ state: 'failed', error: 'The service refused the request (404).' })).toBe(false);
  expect(offered({ state: 'failed', error: CREDENTIALS_REFUSED })).toBe(false);
  expect(offered({})).toBe(false);
  const error = "The service refuses to renew the app's access (403).";
  expect(offered({ state: 'failed', error })).toBe(true);
  expect(offered({ state: 'waiting', waiting_for: 'retry', error })).toBe(true);
  expect(offered({ state: 'waiting', waiting_for: 'turn', error })).toBe(false);
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
