import { describe, expect, it } from 'vitest';
import { INSTALL_KEPT_MS, mergeBrowsers, SESSION_LIFETIME_MS } from '../../src/store/browsers.ts';
import { installInstance } from '../support/install-instance.ts';
import { DATABASES, NOW, openTestStore } from './test-store.ts';

describe.each(DATABASES)('on %s', async (kind) => {
  const { db, browsers, installs, whoSees } = await openTestStore(kind);
  const count = async (table: 'browsers' | 'sessions' | 'installs' | 'access') =>
    (await db.selectFrom(table).selectAll().execute()).length;

  it('removes expired sessions and installs, and browsers that have neither', async () => {
    await installInstance(db, { id: 'ins_1' }, NOW);
    await installs.begin({ stateHash: 'abandoned', nonceHash: 'n' }, undefined, NOW);
    await browsers.removeExpired(NOW + INSTALL_KEPT_MS - 1);
    expect([await count('browsers'), await count('installs')]).toEqual([2, 2]);
    await browsers.removeExpired(NOW + INSTALL_KEPT_MS);
    expect([await count('browsers'), await count('installs'), await count('access')]).toEqual([1, 0, 1]);
    await browsers.removeExpired(NOW + SESSION_LIFETIME_MS);
    expect([await count('browsers'), await count('sessions'), await count('access')]).toEqual([0, 0, 0]);
  });

  it('knows a browser that another one has signed out, until it signs in again', async () => {
    const own = await openTestStore(kind);
    const id = await own.addInstance();
    const [first = ''] = await own.whoSees(id);
    await own.addInstance(id);
    const [second = ''] = [...(await own.whoSees(id))].filter((one) => one !== first);
    await own.browsers.logOutOthers(second, id);
    const seen = async (browser: string) => [
      await own.browsers.sees(browser, id),
      await own.browsers.isSignedOut(browser, id),
      (await own.browsers.instancesOf(browser)).length,
    ];
    expect([await seen(first), await seen(second), await seen('nobody')]).toEqual([
      [false, true, 0],
      [true, false, 1],
      [false, false, 0],
    ]);
    // Two tabs that turn out to be one browser: what one of them still sees, it sees.
    await own.db.transact((tx) => mergeBrowsers(tx, first, [second]));
    expect(await seen(first)).toEqual([true, false, 1]);
  });

  it('prolongs a session, and finds no expired one', async () => {
    await installInstance(db, { id: 'ins_2' }, NOW);
    const { sid_hash } = await db.selectFrom('sessions').select('sid_hash').executeTakeFirstOrThrow();
    const end = NOW + SESSION_LIFETIME_MS;
    expect(await browsers.findSession(sid_hash, end)).toBeUndefined();
    await browsers.touchSession(sid_hash, end + 1);
    expect(await browsers.findSession(sid_hash, end)).toMatchObject({ expiresAt: end + 1 });
  });

  it('stores the tokens of an install whose browser has logged out', async () => {
    await installs.begin({ stateHash: 's', nonceHash: 'n' }, undefined, NOW);
    const { browser_id } = (await installs.find('s')) ?? expect.unreachable();
    await browsers.logOut(browser_id);
    const moments = {
      access_expires_at: NOW,
      refresh_issued_at: NOW,
      refresh_due_at: NOW,
      refreshed_at: NOW,
    };
    const tokens = { access_token: 'a', refresh_token: 'r', ...moments };
    const proof = { nonceHashes: ['n'], carriedSid: undefined, newSid: 'sid' };
    const instance = { id: 'ins_3', company_id: 'cmp_3', name: 'Late' };
    expect(await installs.complete('s', instance, tokens, proof, NOW, [])).toEqual({
      isSeen: false,
      isSignIn: false,
    });
    expect(await whoSees('ins_3')).toEqual(new Set());
    expect(await browsers.findSession('sid', NOW)).toBeUndefined();
    const stored = await db
      .selectFrom('tokens')
      .select('access_token')
      .where('instance_id', '=', 'ins_3')
      .execute();
    expect(stored).toEqual([{ access_token: 'a' }]);
  });

  it('a new install hides a disconnected company from its earlier browsers', async () => {
    await installInstance(db, { id: 'ins_4' }, NOW);
    await db.updateTable('instances').set({ status: 'disconnected' }).where('id', '=', 'ins_4').execute();
    const before = await whoSees('ins_4');
    await installInstance(db, { id: 'ins_4' }, NOW);
    const after = await whoSees('ins_4');
    expect([before.size, after.size, [...after].some((id) => before.has(id))]).toEqual([1, 1, false]);
  });
});
