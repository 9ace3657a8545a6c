import { randomBytes } from 'node:crypto';
import { beforeEach, expect, it } from 'vitest';
import { reencryptSummary, reencryptTokens } from '../../src/auth/reencrypt.ts';
import { TokenCipher } from '../../src/auth/token-cipher.ts';
import { encryptTokens } from '../../src/auth/tokens.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { TokenStore } from '../../src/store/token-table.ts';
import { installInstance } from '../support/install-instance.ts';
import { tempDir } from '../support/temp-dir.ts';

const NOW = Date.UTC(2026, 2, 1);

const INSTANCES = 250;
const [oldKey, newKey] = ['old', 'new'].map((id) => ({ id, key: randomBytes(32) }));
if (oldKey === undefined || newKey === undefined) throw new Error('no keys');
const [older, both, newer] = [[oldKey], [newKey, oldKey], [newKey]].map((keys) => new TokenCipher(keys));
if (older === undefined || both === undefined || newer === undefined) throw new Error('no ciphers');

let store: TokenStore;
beforeEach(async () => {
  const db = await openDatabase(`file:${tempDir()}/app.db`);
  store = new TokenStore(db);
  for (let n = 0; n < INSTANCES; n++) {
    const id = `ins_${String(n).padStart(3, '0')}`;
    await installInstance(db, { id }, NOW, encryptTokens(older, id, `at-${n}`, `rt-${n}`));
  }
  return () => db.destroy();
});

const readable = async (cipher: TokenCipher) => {
  const rows = await store.listEncrypted('', 1_000);
  return rows.filter(({ instance_id: instanceId, refresh_token }) => {
    try {
      return cipher.decrypt(refresh_token, { instanceId, column: 'refresh_token' }).startsWith('rt-');
    } catch {
      return false;
    }
  }).length;
};

it('puts all tokens under the first key, and finds nothing to do the next time', async () => {
  const report = await reencryptTokens({ store, cipher: both });
  expect(report).toEqual({ renewed: INSTANCES, current: 0, unreadable: [], isDone: true });
  expect([await readable(newer), await readable(older)]).toEqual([INSTANCES, 0]);
  expect(reencryptSummary(report, both)).toMatch(/Restart every process .* drop "old"/);
  const again = await reencryptTokens({ store, cipher: both });
  expect(again).toMatchObject({ renewed: 0, current: INSTANCES, isDone: true });
  expect(reencryptSummary(again, both)).toContain('drop "old" if every process');
});

it('may be ended half-way: every token stays readable, and the next run finishes', async () => {
  const stop = new AbortController();
  const report = await reencryptTokens(
    { store, cipher: both },
    { signal: stop.signal, onBatch: () => stop.abort() },
  );
  expect(report).toMatchObject({ renewed: 100, isDone: false });
  expect(await readable(both)).toBe(INSTANCES);
  expect(await readable(newer)).toBe(100);
  expect(reencryptSummary(report, both)).toContain('Run it again');
  expect(await reencryptTokens({ store, cipher: both })).toMatchObject({ renewed: 150, current: 100 });
});

it('leaves what it cannot decrypt, and says why', async () => {
  const report = await reencryptTokens({ store, cipher: newer });
  expect(report.unreadable.length).toBe(INSTANCES);
  expect(report.unreadable[0]?.reason).toContain(
    '"old" encrypted the tokens, and TOKEN_KEYS does not hold it',
  );
  expect(reencryptSummary(report, newer)).toContain('cannot be decrypted: 250');
  expect(await readable(older)).toBe(INSTANCES);
});
