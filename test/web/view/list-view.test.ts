import { describe, expect, it } from 'vitest';
import type { InstanceStatus, ListStatusJson } from '../../../src/sync/status-types.ts';
import { companyFreshness, listView } from '../../../src/web/view/list-view.ts';
import { at, HANDLER, instanceStatus, listStatus, NOW } from '../status-fixtures.ts';

const SITE = { name: 'Acme Sync', resources: [], support: 'help@test.example' };
const RESOURCE = { name: 'contacts', title: 'Contacts' };
const UNSTARTED = { pages: 0, records: 0, started_at: null, finished_at: null } as const;

function view(list: Partial<ListStatusJson>, instance: Partial<InstanceStatus> = {}) {
  const shown = listView(RESOURCE, listStatus(list), instanceStatus(instance), SITE, NOW);
  const text = (of: (typeof shown)['wait']) => of && of.before + (of.moment?.text ?? '') + of.after;
  return { ...shown, wait: text(shown.wait), progress: text(shown.progress) };
}

describe('the progress of a list', () => {
  it.each([
    [{ state: 'running', records: 100, stored: 4_000 }, [100, 4_000]],
    [{ state: 'running', records: 100, stored: 100 }, [null, 1]],
    // A check has found one more, or the first run began again.
    [{ state: 'running', records: 100, stored: 101, full_at: null }, [null, 1]],
    [{ state: 'waiting', records: 100, stored: 100 }, null],
    [{ state: 'waiting', waiting_for: 'limit', records: 100, stored: 100 }, [null, 1]],
    [{ state: 'waiting', records: 100, stored: 4_000 }, [100, 4_000]],
    [{}, null],
    [UNSTARTED, null],
  ] as const)('is a share of what an earlier run left, else movement: %j', (list, valueAndMax) => {
    const { bar } = view(list);
    expect(bar && [bar.value, bar.max]).toEqual(valueAndMax);
  });

  it('is told in records and time, waits included', () => {
    const first = {
      state: 'running',
      records: 1_200,
      pages: 12,
      stored: 1_200,
      started_at: at(-30_000),
    } as const;
    expect(view(first).progress).toBe('1,200 records so far, begun 30 s ago');
    expect(view({ ...first, stored: 4_012 }).progress).toBe(
      '1,200 of about 4,012 records read, begun 30 s ago',
    );
    expect(view({}).progress).toBe('The last sync read 4,012 records in 1 min.');
    expect(view({ ...first, records: 1, full_at: null }).progress).toBe('1 record so far, begun 30 s ago');
    expect(view(first, { status: 'disconnected' }).progress).toBeNull();
  });
});

describe('the state of a list', () => {
  it.each([
    [{}, 'active', 'Complete'],
    [{ state: 'running' }, 'active', 'Copying'],
    [{ state: 'waiting', waiting_for: 'limit' }, 'active', 'Copying'],
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
    [{ waiting_for: 'limit' }, null],
    [{ waiting_for: 'retry' }, 'The app tries again in 9 s.'],
    [{ waiting_for: 'turn' }, 'The list waits for its turn.'],
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

  it('says how many changes were not handed on, in words of an administrator', () => {
    const handler = { ...HANDLER, dead_letters: 2, pending: 10, last_error: 'ECONNREFUSED' };
    expect(view({ handler }).undelivered).toBe('12 changes could not be handed to Acme Sync.');
    expect(view({ handler: { ...HANDLER, pending: 10 } }).undelivered).toBe('');
  });

  it('of a company is that of its oldest list', () => {
    const older = listStatus({ full_at: at(-900_000), checked_at: at(-90_000) });
    const both = { contacts: listStatus(), conversations: older };
    const shown = companyFreshness(instanceStatus({ resources: both }), NOW);
    expect([shown.fullAt, shown.compared?.moment?.text, shown.next?.moment?.text]).toEqual([
      at(-900_000),
      '1 min 30 s ago',
      'in 55 min',
    ]);
    const open = { ...both, conversations: listStatus({ full_at: null }) };
    expect(companyFreshness(instanceStatus({ resources: open }), NOW)).toMatchObject({
      fullAt: null,
      isPartial: true,
    });
  });

  it('offers a new authorization where the service refuses, and only there', () => {
    expect(view({ state: 'failed', error_kind: 'refused' }).mayNeedAuthorization).toBe(true);
    expect(view({ state: 'failed', error_kind: 'credentials' }).mayNeedAuthorization).toBe(false);
    const waiting = { state: 'waiting', waiting_for: 'turn', error_kind: 'refused' } as const;
    expect(view(waiting).mayNeedAuthorization).toBe(false);
  });
});
