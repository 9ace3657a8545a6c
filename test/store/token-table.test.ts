import { beforeEach, describe, expect, it } from 'vitest';
import type { TokenRow } from '../../src/store/token-table.ts';
import { DATABASES, openTestStore } from './test-store.ts';

const OVER = { kind: 'reauthorize', detail: 'The grant is over.' } as const;
const ACTIVE = { status: 'active', error_kind: null, error_detail: null };

describe.each(DATABASES)('on %s', async (kind) => {
  const { instances, tokens, addInstance } = await openTestStore(kind);

  let id: string;
  let row: TokenRow;
  beforeEach(async () => {
    id = await addInstance();
    row = (await tokens.find(id)) ?? expect.unreachable();
  });

  const stateOf = async () => {
    const { status, error_kind, error_detail } = (await instances.find(id)) ?? expect.unreachable();
    return { status, error_kind, error_detail };
  };
  const pauseLeft = async () => (await tokens.findForRefresh(id))?.pauseLeftMs ?? expect.unreachable();

  describe('a lease', () => {
    it('has one holder until its time is over', async () => {
      expect(await tokens.acquireLease(row, 'first', 60_000)).toBe(true);
      expect(await tokens.acquireLease(row, 'second', 60_000)).toBe(false);
      const other = (await tokens.find(await addInstance())) ?? expect.unreachable();
      expect(await tokens.acquireLease(other, 'first', -1)).toBe(true);
      expect(await tokens.acquireLease(other, 'second', 60_000)).toBe(true);
    });

    it('ends with a failure, which begins a backoff', async () => {
      await tokens.acquireLease(row, 'me', 60_000);
      await tokens.fail(row, 'me', 30_000);
      expect(await pauseLeft()).toBeGreaterThan(20_000);
      expect(await tokens.find(id)).toMatchObject({
        lease_owner: null,
        refresh_failures: 1,
        version: row.version,
      });
      await tokens.fail(row, 'another', 30_000);
      expect((await tokens.find(id))?.refresh_failures).toBe(1);
    });
  });

  describe('a refreshed grant', () => {
    it('raises the version, and ends lease and backoff', async () => {
      await tokens.acquireLease(row, 'me', 60_000);
      await tokens.fail(row, 'me', 30_000);
      const newer = { ...row, refresh_token: 'newer', refresh_issued_at: row.refreshed_at + 1 };
      expect(await tokens.save(row, newer, 0)).toBe(true);
      expect(await tokens.find(id)).toMatchObject({
        refresh_token: 'newer',
        version: row.version + 1,
        lease_owner: null,
        refresh_failures: 0,
        refreshes: 1,
        rotations: 1,
      });
      expect(await pauseLeft()).toBeLessThanOrEqual(0);
    });

    it('overwrites no newer one', async () => {
      expect(await tokens.save(row, { ...row, refresh_token: 'newer' }, 0)).toBe(true);
      expect(await tokens.save(row, { ...row, refresh_token: 'late' }, 0)).toBe(false);
      expect(await tokens.acquireLease(row, 'late', 60_000)).toBe(false);
      expect((await tokens.find(id))?.refresh_token).toBe('newer');
    });

    it('is not stored after a disconnect, or over the next install', async () => {
      await tokens.disconnect(id);
      expect(await tokens.find(id)).toBeUndefined();
      expect(await tokens.save(row, { ...row, refresh_token: 'late' }, 0)).toBe(false);
      await addInstance(id);
      expect(await tokens.save(row, { ...row, refresh_token: 'late' }, 0)).toBe(false);
      expect((await tokens.find(id))?.refresh_token).toBe('encrypted');
    });

    it('makes an instance active again', async () => {
      await tokens.reject(row, OVER);
      expect(await tokens.save(row, row, 0)).toBe(true);
      expect(await stateOf()).toEqual(ACTIVE);
    });
  });

  describe('the end of a grant', () => {
    it('is noted once', async () => {
      expect(await tokens.reject(row, OVER)).toBe(true);
      expect(await tokens.reject(row, { ...OVER, detail: 'Once more.' })).toBe(false);
      const { kind: error_kind, detail: error_detail } = OVER;
      expect(await stateOf()).toEqual({ status: 'needs_reauthorization', error_kind, error_detail });
    });

    it('does not concern a newer grant', async () => {
      expect(await tokens.save(row, row, 0)).toBe(true);
      expect(await tokens.reject(row, OVER)).toBe(false);
      expect(await stateOf()).toEqual(ACTIVE);
    });
  });

  it('encrypts only unchanged tokens again, and keeps the version', async () => {
    const written = { ...row, access_token: 'again' };
    expect(await tokens.reencrypt([{ read: row, written }])).toBe(1);
    expect(await tokens.reencrypt([{ read: row, written: { ...row, access_token: 'late' } }])).toBe(0);
    expect(await tokens.find(id)).toMatchObject({ access_token: 'again', version: row.version });
  });
});
