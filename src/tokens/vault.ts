import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** A key that encrypts tokens at rest: 32 bytes, with the id that envelopes name it by. */
export interface VaultKey {
  id: string;
  key: Buffer;
}

/** What a sealed text is, and whose: it opens only as that. */
export interface SealedFor {
  instanceId: string;
  purpose: 'access_token' | 'refresh_token';
}

/** A sealed text that cannot be opened: another key, or it was changed or moved. */
export class VaultError extends Error {
  override readonly name = 'VaultError';
}

const ALGORITHM = 'aes-256-gcm';
const VERSION = 'v1';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts tokens at rest with AES-256-GCM. An envelope reads `v1.<key id>.<iv, ciphertext and tag in base64url>`;
 * instance and purpose are authenticated with it, so that a ciphertext is worth nothing elsewhere.
 */
export class Vault {
  readonly #sealing: VaultKey;
  readonly #keys: ReadonlyMap<string, Buffer>;

  /** @param keys the first seals, all of them open */
  constructor(keys: readonly VaultKey[]) {
    const [first] = keys;
    if (first === undefined) throw new VaultError('A vault needs a key.');
    this.#sealing = first;
    this.#keys = new Map(keys.map(({ id, key }) => [id, key]));
  }

  /** Encrypts a text for one place. */
  seal(text: string, place: SealedFor): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#sealing.key, iv, { authTagLength: TAG_BYTES });
    cipher.setAAD(associatedData(place, this.#sealing.id));
    const sealed = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${VERSION}.${this.#sealing.id}.${sealed.toString('base64url')}`;
  }

  /**
   * Decrypts an envelope.
   *
   * @throws VaultError when the key is not there, or the envelope was changed or belongs elsewhere
   */
  open(envelope: string, place: SealedFor): string {
    const [, keyId = '', data = ''] = envelope.split('.');
    const sealed = Buffer.from(data, 'base64url');
    // Decoding passes over what does not belong there; an envelope is only what was written.
    const isWhole = envelope === `${VERSION}.${keyId}.${sealed.toString('base64url')}`;
    if (!isWhole || sealed.length < IV_BYTES + TAG_BYTES) {
      throw new VaultError(`The stored ${place.purpose} of ${place.instanceId} is damaged.`);
    }
    const key = this.#keys.get(keyId);
    if (key === undefined) {
      throw new VaultError(
        `The stored ${place.purpose} of ${place.instanceId} was encrypted with key "${keyId}", which TOKEN_KEYS does not hold.`,
      );
    }
    const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, IV_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(associatedData(place, keyId));
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    try {
      const text = decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES));
      return Buffer.concat([text, decipher.final()]).toString('utf8');
    } catch (error) {
      throw new VaultError(
        `The stored ${place.purpose} of ${place.instanceId} was changed, or belongs elsewhere.`,
        { cause: error },
      );
    }
  }
}

function associatedData({ instanceId, purpose }: SealedFor, keyId: string): Buffer {
  return Buffer.from(JSON.stringify([VERSION, keyId, instanceId, purpose]), 'utf8');
}
