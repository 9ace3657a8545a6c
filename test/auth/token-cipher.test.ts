import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  type CipherContext,
  DamagedTokenError,
  TokenCipher,
  WrongKeyError,
} from '../../src/auth/token-cipher.ts';

const CONTEXT: CipherContext = { instanceId: 'ins_1', column: 'refresh_token' };
const TOKEN = 'secret-Zoë-€-\u{1f511}';

function newKey(id: string) {
  return { id, key: randomBytes(32) };
}

const key = newKey('k1');
const cipher = new TokenCipher([key]);

describe('a ciphertext', () => {
  it.each(['', 'x', TOKEN, 'a'.repeat(10_000)])('decrypts to what was encrypted', (text) => {
    const ciphertext = cipher.encrypt(text, CONTEXT);
    expect(cipher.decrypt(ciphertext, CONTEXT)).toBe(text);
    expect(ciphertext).toMatch(/^v1\.k1\.[\w-]+$/);
  });

  it('differs each time', () => {
    const ciphertexts = Array.from({ length: 50 }, () => cipher.encrypt(TOKEN, CONTEXT));
    expect(new Set(ciphertexts).size).toBe(50);
  });

  it('decrypts with no bit changed', () => {
    const ciphertext = Buffer.from(cipher.encrypt('short', CONTEXT), 'latin1');
    for (let bit = 0; bit < ciphertext.length * 8; bit++) {
      const changed = Buffer.from(ciphertext);
      const at = Math.floor(bit / 8);
      changed.writeUInt8((changed[at] ?? 0) ^ (1 << (bit % 8)), at);
      // A bit of the key's id makes it another key's.
      expect(() => cipher.decrypt(changed.toString('latin1'), CONTEXT), `bit ${bit}`).toThrow();
    }
  });

  it.each<[string, CipherContext]>([
    ['another instance', { ...CONTEXT, instanceId: 'ins_2' }],
    ['another column', { ...CONTEXT, column: 'access_token' }],
  ])('does not decrypt for %s', (_what, context) => {
    expect(() => cipher.decrypt(cipher.encrypt(TOKEN, CONTEXT), context)).toThrow(DamagedTokenError);
  });

  it.each(['', 'v1', 'v1.k1.', 'v1.k1.AAAA', 'plain-text-token'])('is not %j', (text) => {
    expect(() => cipher.decrypt(text, CONTEXT)).toThrow(DamagedTokenError);
  });

  it('tells nothing of the token when it is damaged', () => {
    const damaged = cipher.encrypt(TOKEN, CONTEXT).slice(0, -1);
    expect(() => cipher.decrypt(damaged, CONTEXT)).toThrow('The stored refresh token is damaged.');
  });
});

describe('keys', () => {
  it('are several: the first encrypts, all decrypt', () => {
    const old = cipher.encrypt(TOKEN, CONTEXT);
    const fresh = newKey('2026.b');
    const both = new TokenCipher([fresh, key]);
    expect(both.decrypt(old, CONTEXT)).toBe(TOKEN);
    expect([both.isCurrent(old), both.isCurrent(both.encrypt(TOKEN, CONTEXT))]).toEqual([false, true]);
    expect(new TokenCipher([fresh]).decrypt(both.encrypt(TOKEN, CONTEXT), CONTEXT)).toBe(TOKEN);
  });

  it('that are missing are named, and lose nothing', () => {
    const other = new TokenCipher([newKey('k2')]);
    const decrypt = () => other.decrypt(cipher.encrypt(TOKEN, CONTEXT), CONTEXT);
    expect(decrypt).toThrow(
      expect.objectContaining({ kind: 'key_missing', message: expect.stringContaining('"k1"') }),
    );
  });

  it('do not decrypt under the name of another key', () => {
    const twin = new TokenCipher([key, { id: 'k9', key: key.key }]);
    const renamed = cipher.encrypt(TOKEN, CONTEXT).replace('.k1.', '.k9.');
    expect(() => twin.decrypt(renamed, CONTEXT)).toThrow(DamagedTokenError);
  });

  it('must be the ones that their ids first stood for', async () => {
    const kept = new Map<string, string>();
    const keep = async (name: string, value: string) => {
      if (!kept.has(name)) kept.set(name, value);
      return kept.get(name) ?? '';
    };
    await cipher.proveKeys(keep);
    await new TokenCipher([newKey('k2'), key]).proveKeys(keep);
    await expect(new TokenCipher([newKey('k1')]).proveKeys(keep)).rejects.toThrow(WrongKeyError);
    expect([...kept.values()].some((value) => value.includes(key.key.toString('base64url')))).toBe(false);
  });
});
