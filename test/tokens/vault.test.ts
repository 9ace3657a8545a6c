import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { type SealedFor, Vault, VaultError } from '../../src/tokens/vault.ts';

const PLACE: SealedFor = { instanceId: 'ins_1', purpose: 'refresh_token' };
const TOKEN = 'secret-Zoë-€-\u{1f511}';

function newKey(id: string) {
  return { id, key: randomBytes(32) };
}

const key = newKey('k1');
const vault = new Vault([key]);

test.each(['', 'x', TOKEN, 'a'.repeat(10_000)])('what is sealed opens again', (text) => {
  const envelope = vault.seal(text, PLACE);
  expect(vault.open(envelope, PLACE)).toBe(text);
  expect(envelope).toMatch(/^v1\.k1\.[\w-]+$/);
  if (text.length > 8) expect(envelope).not.toContain(text);
});

test('the same text never looks the same twice', () => {
  const envelopes = Array.from({ length: 50 }, () => vault.seal(TOKEN, PLACE));
  expect(new Set(envelopes).size).toBe(50);
});

test('another key of the same name does not open it', () => {
  const stranger = new Vault([newKey('k1')]);
  expect(() => stranger.open(vault.seal(TOKEN, PLACE), PLACE)).toThrow(VaultError);
});

test('no bit of the envelope can be turned', () => {
  const envelope = vault.seal('short', PLACE);
  const text = Buffer.from(envelope, 'latin1');
  for (let bit = 0; bit < text.length * 8; bit++) {
    const changed = Buffer.from(text);
    const at = Math.floor(bit / 8);
    changed.writeUInt8((changed[at] ?? 0) ^ (1 << (bit % 8)), at);
    expect(() => vault.open(changed.toString('latin1'), PLACE), `bit ${bit}`).toThrow(VaultError);
  }
});

test('no bit of iv, ciphertext and tag can be turned', () => {
  const [version, id, data = ''] = vault.seal('short', PLACE).split('.');
  const sealed = Buffer.from(data, 'base64url');
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const changed = Buffer.from(sealed);
    const at = Math.floor(bit / 8);
    changed.writeUInt8((changed[at] ?? 0) ^ (1 << (bit % 8)), at);
    expect(() => vault.open(`${version}.${id}.${changed.toString('base64url')}`, PLACE)).toThrow(VaultError);
  }
});

test.each<[string, SealedFor]>([
  ['another instance', { ...PLACE, instanceId: 'ins_2' }],
  ['another purpose', { ...PLACE, purpose: 'access_token' }],
])('it opens nowhere else: %s', (_where, place) => {
  expect(() => vault.open(vault.seal(TOKEN, PLACE), place)).toThrow(/was changed, or belongs elsewhere/);
});

test('a new key seals, old ones still open', () => {
  const old = vault.seal(TOKEN, PLACE);
  const fresh = newKey('k2');
  const both = new Vault([fresh, key]);
  expect(both.open(old, PLACE)).toBe(TOKEN);
  const sealed = both.seal(TOKEN, PLACE);
  expect(sealed.split('.')[1]).toBe('k2');
  expect(new Vault([fresh]).open(sealed, PLACE)).toBe(TOKEN);
  expect(() => new Vault([fresh]).open(old, PLACE)).toThrow(/"k1", which TOKEN_KEYS does not hold/);
});

test('the id of a key may hold dots', () => {
  const dotted = new Vault([newKey('2026.a.b')]);
  const envelope = dotted.seal(TOKEN, PLACE);
  expect(dotted.open(envelope, PLACE)).toBe(TOKEN);
  expect(dotted.isCurrent(envelope)).toBe(true);
});

test('an envelope does not open under another key’s name, even of the same bytes', () => {
  const twin = new Vault([key, { id: 'k9', key: key.key }]);
  expect(() => twin.open(vault.seal(TOKEN, PLACE).replace('.k1.', '.k9.'), PLACE)).toThrow(VaultError);
});

test.each([
  '',
  'v1',
  'v1.k1',
  'v1.k1.',
  'v1.k1.AAAA',
  'v2.k1.AAAA',
  'plain-text-token',
  ...[
    (envelope: string) => envelope.slice(0, -1),
    (envelope: string) => `${envelope}A`,
    (envelope: string) => `${envelope}=`,
    (envelope: string) => `${envelope}.x`,
    (envelope: string) => `${envelope}\n`,
    (envelope: string) => ` ${envelope}`,
    (envelope: string) => envelope.replace('v1', 'v2'),
  ].map((damage) => damage(vault.seal(TOKEN, PLACE))),
])('what is damaged does not open, and does not show itself: %j', (envelope) => {
  const open = () => vault.open(envelope, PLACE);
  expect(open).toThrow(VaultError);
  expect(open).toThrow(expect.objectContaining({ message: expect.not.stringContaining(TOKEN) }));
});

test('a vault without a key is none', () => {
  expect(() => new Vault([])).toThrow(TypeError);
});
