import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/store/open-database.ts';
import { TokenStore } from '../../src/store/tokens.ts';
import { explainMissingKey, proveKeys, WrongKeyError } from '../../src/tokens/key-checks.ts';
import { openVault } from '../../src/tokens/open-vault.ts';
import { reencryptTokens } from '../../src/tokens/reencrypt.ts';
import { missingKeyMessages, Vault } from '../../src/tokens/vault.ts';
import { makeFirstSchema } from '../store/first-schema.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { instanceId, newKey, openEncrypted, tokenKeysValue } from '../trust/encrypted-tokens.ts';

const [RIGHT, WRONG] = [newKey('k1'), newKey('k1')];

type Key = typeof RIGHT;
const prove = (store: TokenStore, ...keys: Key[]) => proveKeys({ store, vault: new Vault(keys) });

test('where there are no tokens yet, the first key of an id is the right one', async () => {
  const { store } = await openEncrypted(0, RIGHT);
  await prove(store, RIGHT);
  await prove(store, RIGHT);
  await expect(prove(store, WRONG)).rejects.toThrow(WrongKeyError);
  await expect(prove(store, WRONG)).rejects.toThrow(/another key under the id "k1"/);
});

test('of two keys under an id that both have found unused, the first to be noted is the right one', async () => {
  const { store, url } = await openEncrypted(0, RIGHT);
  const db = await openDatabase(url);
  const [one, other] = await Promise.allSettled([prove(store, RIGHT), prove(new TokenStore(db), WRONG)]);
  await db.destroy();
  const [winner, refused] = one.status === 'fulfilled' ? [RIGHT, other] : [WRONG, one];
  expect(await store.keyCheck('k1')).toBe(new Vault([winner]).checkValue('k1'));
  expect([one.status, other.status].toSorted()).toEqual(['fulfilled', 'rejected']);
  expect(refused).toMatchObject({ reason: expect.any(WrongKeyError) });
});

test('in a database from before there were check values, only a key that opens a token is the right one', async () => {
  const { store } = await openEncrypted(250, RIGHT);
  await expect(prove(store, WRONG)).rejects.toThrow(/opens none of the tokens .*Put the right key back/);
  expect(await store.keyCheck('k1')).toBeUndefined();
  await prove(store, RIGHT);
  await expect(prove(store, WRONG)).rejects.toThrow(/another key under the id "k1"/);
});

test('with a wrong key a database of a version before there were check values is not even migrated', async () => {
  const path = `${tempDir()}/app.db`;
  await makeFirstSchema(path, []);
  const old = new Sqlite(path);
  const [access, refresh] = (['access_token', 'refresh_token'] as const).map((purpose) =>
    new Vault([RIGHT]).seal('x', { instanceId: 'ins_1', purpose }),
  );
  old.prepare('insert into tokens values (?, ?, ?, 1, 1, 1, 1, 1, 0, 0)').run('ins_1', access, refresh);
  const migrations = () => old.prepare('select name from kysely_migration').pluck().all();
  const open = (key: Key) =>
    openVault(`file:${path}`, [key], {
      application: { clientId: 'app', authUrl: 'https://auth.example' },
      onSecret: () => undefined,
      onAwake: () => undefined,
    });
  await expect(open(WRONG)).rejects.toThrow(/opens none of the tokens .*Put the right key back/);
  expect(migrations()).toEqual(['0001-initial']);
  const { db } = await open(RIGHT);
  expect(migrations().length).toBeGreaterThan(1);
  expect(await new TokenStore(db).keyCheck('k1')).toBe(new Vault([RIGHT]).checkValue('k1'));
  await db.destroy();
  old.close();
});

test('one token that opens is enough, wherever it stands', async () => {
  const { db, store } = await openEncrypted(150, RIGHT);
  await db
    .updateTable('tokens')
    .set({
      access_token: 'v1.k1.AAAA',
      refresh_token: new Vault([WRONG]).seal('x', { instanceId: 'x', purpose: 'refresh_token' }),
    })
    .where('instance_id', '!=', instanceId(149))
    .execute();
  await prove(store, RIGHT);
  expect(await store.keyCheck('k1')).toBe(new Vault([RIGHT]).checkValue('k1'));
});

test('a wrong key among several keeps the others from being written, too', async () => {
  const { store } = await openEncrypted(3, RIGHT);
  const next = newKey('k2');
  await expect(prove(store, next, WRONG)).rejects.toThrow(WrongKeyError);
  expect(await store.keyCheck('k2')).toBeUndefined();
});

test('a check value says nothing about the key, and is another one under another id', () => {
  const vault = new Vault([RIGHT, { ...RIGHT, id: 'k9' }]);
  const [one, other] = [vault.checkValue('k1'), vault.checkValue('k9')];
  expect(one).toMatch(/^[\w-]{43}$/);
  expect(other).not.toBe(one);
  expect(one).not.toBe(RIGHT.key.toString('base64url'));
  expect(vault.checkValue('k3')).toBeUndefined();
});

test('after a change of the key the old id stays what it was: another key needs another id', async () => {
  const { store } = await openEncrypted(5, RIGHT);
  const next = newKey('k2');
  await prove(store, next, RIGHT);
  const both = new Vault([next, RIGHT]);
  expect(await reencryptTokens({ store, vault: both })).toMatchObject({ renewed: 5, unreadable: [] });
  await prove(store, next);
  await expect(prove(store, next, WRONG)).rejects.toThrow(WrongKeyError);
});

test('what is said of a missing key, whether the database knows it or not, is what its runs are found by when it is back', async () => {
  const { db, store } = await openEncrypted(1, RIGHT);
  const sealed = await store.find(instanceId(0));
  const stranger = new Vault([newKey('k2')]);
  const said: string[] = [];
  for (const purpose of ['access_token', 'refresh_token'] as const) {
    const place = { instanceId: instanceId(0), purpose };
    const error = await Promise.resolve()
      .then(() => stranger.open(sealed?.[purpose] ?? '', place))
      .catch((thrown) => thrown);
    said.push((await explainMissingKey(store, error)).message);
    await prove(store, RIGHT);
    said.push((await explainMissingKey(store, error)).message);
    await db.deleteFrom('key_checks').execute();
  }
  expect(said).toEqual([
    expect.stringMatching(/access token names the key "k1", .* this database does not know/),
    expect.stringMatching(/access token was encrypted with the key "k1", .* put that key back/),
    expect.stringMatching(/refresh token names the key "k1", .* this database does not know/),
    expect.stringMatching(/refresh token was encrypted with the key "k1", .* put that key back/),
  ]);
  expect(missingKeyMessages(['k1'])).toEqual(expect.arrayContaining(said));
});

test('a backup from before a key knows nothing of it: it is proven anew', async () => {
  const { db, store } = await openEncrypted(5, RIGHT);
  await prove(store, RIGHT);
  await db.deleteFrom('key_checks').execute();
  await prove(store, newKey('k2'), RIGHT);
  await expect(prove(store, WRONG)).rejects.toThrow(WrongKeyError);
});

test.each([
  ['no tokens', 0],
  ['tokens from before there were check values', 20],
])(
  'of processes with different keys that start at the same time, with %s, those of one key go on',
  async (_what, count) => {
    const { url } = await openEncrypted(count, RIGHT);
    const keys = [WRONG, RIGHT, WRONG, RIGHT];
    const started = keys.map((key) =>
      spawnEntry('src/reencrypt.ts', { DATABASE_URL: url, TOKEN_KEYS: tokenKeysValue([key]) }),
    );
    const codes = (await Promise.all(started.map(({ exited }) => exited))).map(({ code }) => code);
    expect([
      [0, 1, 0, 1],
      [1, 0, 1, 0],
    ]).toContainEqual(codes);
    if (count > 0) expect(codes[1]).toBe(0);
    const refused = started.filter((_one, index) => codes[index] === 1);
    for (const one of refused) expect(one.output()).toMatch(/TOKEN_KEYS.*Put the right key back/);
    const db = await openDatabase(url);
    const winner = codes[1] === 0 ? RIGHT : WRONG;
    expect(await new TokenStore(db).keyCheck('k1')).toBe(new Vault([winner]).checkValue('k1'));
    await db.destroy();
  },
);
