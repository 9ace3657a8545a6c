import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { reencryptTokens } from '../../src/tokens/reencrypt.ts';
import { reencryptSummary } from '../../src/tokens/reencrypt-summary.ts';
import { Vault } from '../../src/tokens/vault.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { instanceId, newKey, openAll, openEncrypted, tokenKeysValue } from './encrypted-tokens.ts';

// Many processes start: on a machine that has other work, that takes its time.
vi.setConfig({ testTimeout: 120_000 });

const [OLD, NEW] = [newKey('old'), newKey('new')];
const BOTH = [NEW, OLD];

function spawnReencrypt(url: string, keys = BOTH) {
  return spawnEntry('src/reencrypt.ts', { DATABASE_URL: url, TOKEN_KEYS: tokenKeysValue(keys) });
}

function originals(count: number): [string, string][] {
  return Array.from({ length: count }, (_, index) => [`at-${index}`, `rt-${index}`]);
}

/** How many instances are under the new key alone. */
async function renewed(store: Awaited<ReturnType<typeof openEncrypted>>['store']): Promise<number> {
  const vault = new Vault(BOTH);
  const rows = await store.listSealed('', 100_000);
  return rows.filter((row) => vault.isCurrent(row.access_token) && vault.isCurrent(row.refresh_token)).length;
}

test('every token goes under the first key, the old one may go, and a second time there is nothing to do', async () => {
  const { url, store } = await openEncrypted(250, OLD);
  const first = spawnReencrypt(url);
  expect((await first.exited).code, first.output()).toBe(0);
  expect(first.output()).toMatch(/the tokens of 250 instances; 0 had been before/);
  expect(first.output()).toMatch(/drop "old"/);
  // What the first round wrote is looked at by a second one, which begins to count anew.
  expect(first.output()).toMatch(
    /\n {2}250 instances looked at\n {2}100 instances looked at once more\n {2}200 instances looked at once more\n/,
  );
  expect(await openAll(store, new Vault([NEW]))).toEqual(originals(250));

  const second = spawnReencrypt(url);
  expect((await second.exited).code).toBe(0);
  expect(second.output()).toMatch(/Found nothing to do: the tokens of 250 instances are under "new"/);
  expect(second.output()).toMatch(/drop "old" if every process has been restarted/);
  const third = spawnReencrypt(url, [NEW]);
  expect((await third.exited).code).toBe(0);
  expect(third.output()).toContain('There are no older keys.');
  for (const { key } of BOTH) expect(first.output() + second.output()).not.toContain(key.toString('base64'));
});

test.each([
  ['no file', undefined],
  ['an empty file', ''],
])(
  'where the database should be and %s is, none is made, no key is said to be unneeded, and it says what to do',
  async (_what, text) => {
    const dir = tempDir();
    const path = join(dir, 'data/app.db');
    if (text !== undefined) {
      mkdirSync(dirname(path));
      writeFileSync(path, text);
    }
    const before = readdirSync(dir, { recursive: true });
    const started = spawnReencrypt(`file:${path}`);
    expect((await started.exited).code).toBe(1);
    expect(started.output()).toContain(`There is no database in ${path}`);
    expect(started.output()).toMatch(/DATABASE_URL/);
    expect(started.output()).not.toMatch(/drop/);
    expect(readdirSync(dir, { recursive: true })).toEqual(before);
  },
);

test('of a database without a token no key is said to be unneeded', async () => {
  const { url } = await openEncrypted(0, OLD);
  const started = spawnReencrypt(url);
  expect((await started.exited).code, started.output()).toBe(0);
  expect(started.output()).toMatch(/holds no tokens.*DATABASE_URL/);
  expect(started.output()).not.toMatch(/drop/);
});

test('killed in the middle, again and again, it loses nothing and comes to its end', async () => {
  const count = 1_500;
  const { url, store } = await openEncrypted(count, OLD);
  const vault = new Vault(BOTH);
  const seen: number[] = [];
  for (let before = 0; before + 600 < count && seen.length < 3; before = seen.at(-1) ?? count) {
    const running = spawnReencrypt(url);
    // It is killed with its first batches written and others not.
    await running.waitForOutput(new RegExp(`  ${before + 200} instances looked at`));
    expect((await running.stop('SIGKILL')).signal).toBe('SIGKILL');
    seen.push(await renewed(store));
    expect(await openAll(store, vault)).toEqual(originals(count));
  }
  expect(seen[0]).toBeGreaterThan(0);
  expect(seen[0]).toBeLessThan(count);
  expect(seen).toEqual(seen.toSorted((one, other) => one - other));

  const last = spawnReencrypt(url);
  expect((await last.exited).code, last.output()).toBe(0);
  expect(await openAll(store, new Vault([NEW]))).toEqual(originals(count));
});

test('ended by a signal it says that it is not done', async () => {
  const { url, store } = await openEncrypted(2_000, OLD);
  const running = spawnReencrypt(url);
  await running.waitForOutput(/ {2}200 instances looked at/);
  expect((await running.stop('SIGTERM')).code).toBe(1);
  expect(running.output()).toMatch(/Not done.*Run it again/);
  expect(await openAll(store, new Vault(BOTH))).toEqual(originals(2_000));
});

test('beside four processes that refresh, no grant is lost and every token can be decrypted', async () => {
  const { url, store } = await openEncrypted(150, OLD);
  // Two have the new value of TOKEN_KEYS already, two not yet: those know the new key, and encrypt under the old one.
  const loops = [BOTH, BOTH, [OLD, NEW], [OLD, NEW]].map((keys, index) =>
    spawnEntry('test/trust/refresh-loop.ts', {}, { args: [url, tokenKeysValue(keys), `p${index}`] }),
  );
  await Promise.all(loops.map((loop) => loop.waitForOutput(/refreshing/)));
  for (let run = 0; run < 2; run++) {
    const running = spawnReencrypt(url);
    await running.exited;
    expect(running.output()).toMatch(/Encrypted anew under "new"/);
  }
  const ends = await Promise.all(loops.map((loop) => loop.stop('SIGTERM')));
  expect(ends.map(({ code }) => code)).toEqual([0, 0, 0, 0]);

  // The newest grant of every instance, by what its process was told had been written.
  const newest = new Map<string, { version: number; text: string }>();
  for (const loop of loops) {
    const written = JSON.parse(/^stored (.*)$/m.exec(loop.output())?.[1] ?? '') as Record<
      string,
      { version: number; text: string }
    >;
    expect(Object.keys(written).length).toBeGreaterThan(0);
    for (const [id, grant] of Object.entries(written)) {
      if (grant.version > (newest.get(id)?.version ?? 0)) newest.set(id, grant);
    }
  }
  const expected = originals(150).map(([access, refresh], index) => {
    const text = newest.get(instanceId(index))?.text;
    return text === undefined ? [access, refresh] : [`at-${text}`, `rt-${text}`];
  });
  expect(await openAll(store, new Vault(BOTH))).toEqual(expected);

  const last = spawnReencrypt(url);
  expect((await last.exited).code, last.output()).toBe(0);
  expect(await openAll(store, new Vault([NEW]))).toEqual(expected);
});

test('a refresh that is under way while its tokens are encrypted anew can still write the newer grant', async () => {
  const { store } = await openEncrypted(1, OLD);
  const vault = new Vault(BOTH);
  const id = instanceId(0);
  const row = await store.find(id);
  if (row === undefined) throw new Error('no tokens');
  expect(await reencryptTokens({ store, vault })).toMatchObject({ renewed: 1, isDone: true });
  const access_token = vault.seal('at-newer', { instanceId: id, purpose: 'access_token' });
  const refresh_token = vault.seal('rt-newer', { instanceId: id, purpose: 'refresh_token' });
  expect(await store.replace({ ...row, access_token, refresh_token }, row.version)).toBe(true);
  expect(await openAll(store, new Vault([NEW]))).toEqual([['at-newer', 'rt-newer']]);
});

test('a grant that came in since its tokens were read stays, also that of a new install with the same version', async () => {
  const { db, store } = await openEncrypted(1, OLD);
  const vault = new Vault(BOTH);
  const id = instanceId(0);
  const row = await store.find(id);
  if (row === undefined) throw new Error('no tokens');
  await store.disconnect(id);
  const seal = (text: string, purpose: 'access_token' | 'refresh_token') =>
    vault.seal(text, { instanceId: id, purpose });
  const { instance_id, version, rotations, refreshes, ...moments } = row;
  await store.install(
    { id: instance_id, company_id: null, name: 'Acme', installed_at: 2 },
    {
      ...moments,
      access_token: seal('at-installed', 'access_token'),
      refresh_token: seal('rt-installed', 'refresh_token'),
    },
  );
  await db.updateTable('tokens').set({ version }).where('instance_id', '=', id).execute();
  expect(await store.find(id)).toMatchObject({ version, rotations, refreshes });
  const stale = {
    ...row,
    access_token: seal('at-0', 'access_token'),
    refresh_token: seal('rt-0', 'refresh_token'),
  };
  expect(await store.reseal([{ read: row, sealed: stale }])).toBe(0);
  expect(await openAll(store, vault)).toEqual([['at-installed', 'rt-installed']]);
});

test('tokens that cannot be opened are left as they are and named, with what to do; the others go on', async () => {
  const { url, db, store } = await openEncrypted(5, OLD);
  const lost = newKey('lost');
  const place = { instanceId: instanceId(1), purpose: 'access_token' } as const;
  const strange = { [instanceId(1)]: new Vault([lost]).seal('at-1', place), [instanceId(3)]: 'v1.old.AAAA' };
  for (const [id, access_token] of Object.entries(strange)) {
    await db.updateTable('tokens').set({ access_token }).where('instance_id', '=', id).execute();
  }
  const running = spawnReencrypt(url);
  expect((await running.exited).code).toBe(1);
  expect(running.output()).toMatch(/the tokens of 3 instances/);
  expect(running.output()).toMatch(/cannot be opened: 2\. .*authorizes the app again/);
  expect(running.output()).toMatch(
    /ins_00001: .*the key "lost", which TOKEN_KEYS does not hold and this database does not know/,
  );
  expect(running.output()).toMatch(/ins_00003: .*is damaged/);
  expect(running.output()).toMatch(
    /run this once more, and when it encrypts none anew, drop "old"\. What cannot/,
  );
  const again = spawnReencrypt(url);
  expect((await again.exited).code).toBe(1);
  expect(again.output()).toMatch(/cannot be opened: 2\./);
  expect(again.output()).not.toContain('Found nothing to do');
  // A third time would find no less.
  expect(again.output()).not.toContain('once more, and');
  expect(again.output()).toMatch(
    /needs "old": drop "old" if every process .*What cannot be opened stays so, with "old" or without\./,
  );
  const without = spawnReencrypt(url, [NEW]);
  expect((await without.exited).code).toBe(1);
  const named = (output: string) => output.match(/^ {2}ins_.*/gm);
  expect(named(without.output())).toEqual(named(again.output()));
  for (const [id, access_token] of Object.entries(strange)) {
    expect((await store.find(id))?.access_token).toBe(access_token);
  }
  expect(await renewed(store)).toBe(3);
});

test('where no token can be opened no key is said to be unneeded, as the keys may be those of others', async () => {
  const { url } = await openEncrypted(2, newKey('lost'));
  const started = spawnReencrypt(url);
  expect((await started.exited).code, started.output()).toBe(1);
  expect(started.output()).toMatch(/cannot be opened: 2\./);
  expect(started.output()).toMatch(/If TOKEN_KEYS and DATABASE_URL are those of the app's other processes/);
  expect(started.output()).not.toMatch(/drop/);
});

test('both tokens are looked at, also where the key is the new one already: whoever drops the old one relies on it', async () => {
  const { db, store } = await openEncrypted(3, NEW);
  const halfway = new Vault([OLD]).seal('rt-1', { instanceId: instanceId(1), purpose: 'refresh_token' });
  for (const [index, refresh_token] of [
    [1, halfway],
    [2, 'v1.new.AAAA'],
  ] as const) {
    await db
      .updateTable('tokens')
      .set({ refresh_token })
      .where('instance_id', '=', instanceId(index))
      .execute();
  }
  const report = await reencryptTokens({ store, vault: new Vault(BOTH) });
  const unreadable = [{ instanceId: instanceId(2), reason: expect.stringContaining('is damaged') }];
  expect(report).toEqual({ renewed: 1, current: 1, unreadable, isDone: true });
  const kept = await store.find(instanceId(1));
  const place = { instanceId: instanceId(1), purpose: 'refresh_token' } as const;
  expect(new Vault([NEW]).open(kept?.refresh_token ?? '', place)).toBe('rt-1');
});

test('a process that writes under an older key all the time does not keep it from ending', async () => {
  const { store } = await openEncrypted(2, OLD);
  const restless = new (class extends Vault {
    override isCurrent(): boolean {
      return false;
    }
  })(BOTH);
  const report = await reencryptTokens({ store, vault: restless });
  expect(report.isDone).toBe(false);
  expect(reencryptSummary(report, restless)).toMatch(/a process still encrypts under an older key/);
});
