import { describe, expect, it } from 'vitest';
import type { InstanceStatus, ListStatusJson } from '../../../src/sync/status-types.ts';
import { listView } from '../../../src/web/view/list-view.ts';
import { at, HANDLER, instanceStatus, listStatus, NOW } from '../status-fixtures.ts';

const SITE = { resources: [], support: 'help@test.example' };
const RESOURCE = { name: 'contacts', title: 'Contacts' };
const UNSTARTED = { pages: 0, records: 0, started_at: null, finished_at: null } as const;

function view(list: Partial<ListStatusJson>, instance: Partial<InstanceStatus> = {}) {
  const shown = listView(RESOURCE, listStatus(list), instanceStatus(instance), SITE, NOW);
  const text = (of: (typeof shown)['wait']) => of && of.before + (of.moment?.text ?? '') + of.after;
  return { ...shown, wait: text(shown.wait), handlerError: text(shown.handlerError) };
}

describe('the progress of a list', () => {
  it.each([
    [{ state: 'running', records: 100, stored: 4_000 }, [100, 4_000]],
    [{ state: 'running', records: 100, stored: 100 }, [null, 1]],
    [{ state: 'waiting', records: 100, stored: 100 }, null],
    [{ state: 'waiting', records: 100, stored: 4_000 }, [100, 4_000]],
    [{}, [1, 1]],
    [UNSTARTED, null],
  ] as const)('is a share of what an earlier run left, else movement: %j', (list, valueAndMax) => {
    const { bar } = view(list);
    expect(bar && [bar.value, bar.max]).toEqual(valueAndMax);
  });

  it('is told in records and pace, waits included', () => {
    const first = {
      state: 'running',
      records: 1_200,
      pages: 12,
      stored: 1_200,
      started_at: at(-30_000),
    } as const;
    expect(view(first)).toMatchObject({
      progress: '1,200 records copied, on 12 pages',
      pace: 'about 40 a second',
    });
    expect(view({ ...first, stored: 4_012 }).progress).toBe('1,200 of about 4,012 records, on 12 pages');
    expect(view({ ...first, records: 3 }).pace).toBe('');
    expect(view({}).pace).toBe('took 1 min');
  });
});

describe('the state of a list', () => {
  it.each([
    [{}, 'active', 'Complete'],
    [{ state: 'running' }, 'active', 'Copying'],
    [{ state: 'failed', error_kind: 'refused' }, 'active', 'Stopped'],
    [{ state: 'failed', error_kind: 'timeout', failing_since: at(-1_000) }, 'active', 'Retrying'],
    [{ held_deletions: 60 }, 'active', 'Deletions held'],
    [{ state: 'running', paused: true }, 'active', 'Paused'],
    [{ state: 'running' }, 'paused', 'Paused'],
    [{ state: 'waiting', waiting_for: 'turn' }, 'needs_reauthorization', 'Stopped'],
    [{}, 'needs_reauthorization', 'Complete'],
    [{ ...UNSTARTED, stored: 180 }, 'disconnected', 'Kept'],
    [{ ...UNSTARTED, stored: 0 }, 'disconnected', 'Empty'],
    [UNSTARTED, 'active', 'Not started'],
  ] as const)('%j of an instance that is %s: %s', (list, status, label) => {
    expect(view(list, { status }).label).toBe(label);
  });

  it.each([
    [{ waiting_for: 'limit' }, 'The list waits for the service’s limit.'],
    [{ waiting_for: 'retry' }, 'The app tries again in 9 s.'],
    [{ waiting_for: 'turn' }, 'The list waits until a worker is free.'],
  ] as const)('says what it waits for: %j', (list, wait) => {
    const waiting = { state: 'waiting', waiting_until: at(9_000), ...list } as const;
    expect(view(waiting).wait).toBe(wait);
    expect(view(waiting, { status: 'paused' }).wait).toBeNull();
    expect(view({ ...waiting, paused: true }).wait).toBeNull();
  });

  it('says what an error means, and not what it was', () => {
    const { error } = view({ error_kind: 'server_error', error: 'It answered 503.' });
    expect(error).toBe('The service has an error of its own.');
  });

  it('says how many of how many deletions are held', () => {
    const { held } = view({ held_deletions: 1_060, stored: 2_000 });
    expect(held).toMatch(/^The last sync did not find 1,060 of 2,000 contacts\. Nothing was deleted\./);
  });

  it('tells missing from deleted and from held', () => {
    expect(view({ missing: 8, deleted: 2 }).remarks).toBe(
      '2 records deleted at the service · 8 records missing: deleted if the next sync misses them, too',
    );
    expect(view({ missing: 60, held_deletions: 60 }).remarks).toBe('');
  });

  it.each([
    ['often', 60, ''],
    ['new', 60, ''],
    ['rare', 60, 'Changes arrive with the whole list, every hour.'],
    ['off', 15, 'Changes arrive with the whole list, every 15 minutes.'],
    ['off', 2 * 24 * 60, 'Changes arrive with the whole list, every 2 days.'],
  ] as const)('with checks that come %s, every %d minutes: %j', (checks, interval_minutes, text) => {
    expect(view({ checks, interval_minutes }).rhythm).toBe(text);
    expect(view({ checks, interval_minutes, paused: true }).rhythm).toBe('');
  });

  it('says when it was checked, and when the whole list was read', () => {
    const { checked, fullAt } = view({});
    expect([checked?.before, checked?.moment?.text, fullAt]).toEqual(['checked ', '20 s ago', at(-300_000)]);
    const none = { checked_at: null, full_at: null };
    expect(view(none)).toMatchObject({ checked: null, fullAt: null, isPartial: true });
    expect(view({ ...none, stored: 0 }).isPartial).toBe(false);
    for (const status of ['paused', 'needs_reauthorization', 'disconnected'] as const) {
      expect(view({ state: 'running' }, { status })).toMatchObject({
        fullAt: at(-300_000),
        isPartial: false,
      });
    }
  });

  it('offers a new authorization where the service refuses, and only there', () => {
    expect(view({ state: 'failed', error_kind: 'refused' }).mayNeedAuthorization).toBe(true);
    expect(view({ state: 'failed', error_kind: 'credentials' }).mayNeedAuthorization).toBe(false);
    const waiting = { state: 'waiting', waiting_for: 'turn', error_kind: 'refused' } as const;
    expect(view(waiting).mayNeedAuthorization).toBe(false);
  });
});

describe('the handler', () => {
  it.each([
    [null, '', null],
    [HANDLER, 'Every change is delivered.', null],
    [{ ...HANDLER, pending: 1_200 }, '1,200 changes pending.', null],
    [
      { ...HANDLER, pending: 1, last_error: 'ECONNREFUSED', next_try_at: at(5_000) },
      '1 change pending.',
      'The handler failed. The app tries again in 5 s.',
    ],
    // The reason stands with the dead letter.
    [
      { ...HANDLER, dead_letters: 1, last_error: 'No.' },
      '1 dead letter; every other change is delivered.',
      null,
    ],
  ])('%j', (handler, text, error) => {
    const shown = view({ handler });
    expect([shown.handler, shown.handlerError]).toEqual([text, error]);
  });
});
