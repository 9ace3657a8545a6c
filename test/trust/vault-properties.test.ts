import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type SealedFor, Vault, VaultError } from '../../src/tokens/vault.ts';

const anyText = fc.string({ unit: 'binary', maxLength: 300 });
const anyKeyId = fc.stringMatching(/^[A-Za-z0-9._-]{1,64}$/);
const anyPlace: fc.Arbitrary<SealedFor> = fc.record({
  instanceId: fc.string({ unit: 'binary', maxLength: 60 }),
  purpose: fc.constantFrom('access_token', 'refresh_token'),
});
const anyVault = anyKeyId.map((id) => new Vault([{ id, key: randomBytes(32) }]));

/** The error of opening it, which must be one; a text that opens fails the property. */
function refusal(vault: Vault, envelope: string, place: SealedFor): VaultError {
  try {
    vault.open(envelope, place);
  } catch (error) {
    if (error instanceof VaultError) return error;
    throw error;
  }
  throw new Error(`opened ${JSON.stringify(envelope)}`);
}

function flip(bytes: Buffer, bit: number): Buffer {
  const flipped = Buffer.from(bytes);
  const at = Math.floor(bit / 8) % bytes.length;
  flipped.writeUInt8((flipped[at] ?? 0) ^ (1 << (bit % 8)), at);
  return flipped;
}

test('any text opens again where it was sealed for', () => {
  fc.assert(
    fc.property(anyVault, anyPlace, anyText, (vault, place, text) => {
      // What is no Unicode text is none afterwards: tokens are ASCII.
      expect(vault.open(vault.seal(text, place), place)).toBe(Buffer.from(text, 'utf8').toString('utf8'));
    }),
  );
});

test('any flipped bit of the stored text is refused', () => {
  fc.assert(
    fc.property(anyVault, anyPlace, anyText, fc.nat(), (vault, place, text, bit) => {
      const stored = Buffer.from(vault.seal(text, place), 'utf8');
      // A database hands a damaged text on as UTF-8, or byte by byte.
      for (const encoding of ['utf8', 'latin1'] as const) {
        refusal(vault, flip(stored, bit).toString(encoding), place);
      }
    }),
    { numRuns: 2_000 },
  );
});

test('any flipped bit of iv, ciphertext and tag is refused as changed', () => {
  fc.assert(
    fc.property(anyVault, anyPlace, anyText, fc.nat(), (vault, place, text, bit) => {
      const envelope = vault.seal(text, place);
      const dataAt = envelope.lastIndexOf('.') + 1;
      const flipped = flip(Buffer.from(envelope.slice(dataAt), 'base64url'), bit).toString('base64url');
      const error = refusal(vault, envelope.slice(0, dataAt) + flipped, place);
      expect(error).toMatchObject({
        isLost: true,
        message: expect.stringMatching(/was changed, or belongs elsewhere/),
      });
    }),
    { numRuns: 2_000 },
  );
});

test('every bit of one envelope, one after the other, is refused', () => {
  const vault = new Vault([{ id: 'k1', key: randomBytes(32) }]);
  const place = { instanceId: 'ins_1', purpose: 'refresh_token' } as const;
  const stored = Buffer.from(vault.seal('rt_0123456789abcdef', place), 'latin1');
  for (let bit = 0; bit < stored.length * 8; bit++) {
    refusal(vault, flip(stored, bit).toString('latin1'), place);
  }
});

test('a ciphertext moved to any other instance or column is refused', () => {
  fc.assert(
    fc.property(anyVault, anyPlace, anyPlace, anyText, (vault, place, other, text) => {
      fc.pre(place.instanceId !== other.instanceId || place.purpose !== other.purpose);
      expect(refusal(vault, vault.seal(text, place), other)).toMatchObject({ isLost: true });
    }),
    { numRuns: 1_000 },
  );
});

test('what is refused does not show itself', () => {
  fc.assert(
    fc.property(
      anyVault,
      anyPlace,
      fc.stringMatching(/^[a-z0-9]{20,40}$/),
      fc.nat(),
      (vault, place, text, bit) => {
        const { message } = refusal(
          vault,
          flip(Buffer.from(vault.seal(text, place)), bit).toString('utf8'),
          place,
        );
        expect(message).not.toContain(text);
      },
    ),
  );
});
