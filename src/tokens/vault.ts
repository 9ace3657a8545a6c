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

/** A sealed text that cannot be opened. The message is for administrators and holds nothing of the text. */
export class VaultError extends Error {
  override readonly name = 'VaultError';
  /** Whether the text is lost (changed, damaged, moved); else it opens again as soon as its key is back. */
  readonly isLost: boolean;

  constructor(message: string, options: ErrorOptions & { isLost: boolean }) {
    super(message, options);
    this.isLost = options.isLost;
  }
}

const ALGORITHM = 'aes-256-gcm';
const VERSION = 'v1';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** The id of a key may hold dots; what comes after the last one cannot. */
const ENVELOPE = /^v1\.([\w.-]{1,64})\.([\w-]+)$/;

/**
 * Encrypts tokens at rest with AES-256-GCM. An envelope reads `v1.<key id>.<iv, ciphertext and tag in base64url>`;
 * instance and purpose are authenticated with it, so that a ciphertext is worth nothing elsewhere.
 */
export class Vault {
  readonly #sealing: VaultKey;
  readonly #keys: ReadonlyMap<string, Buffer>;

  readonly #onSecret: (text: string) => void;

  /**
   * @param keys the first seals, all of them open
   * @param onSecret told of every text that goes in or comes out in clear
   */
  constructor(keys: readonly VaultKey[], onSecret: (text: string) => void = () => undefined) {
    const [first] = keys;
    if (first === undefined) throw new TypeError('A vault needs a key.');
    this.#sealing = first;
    this.#keys = new Map(keys.map(({ id, key }) => [id, key]));
    this.#onSecret = onSecret;
  }

  /** The id of the key that seals. */
  get sealingKeyId(): string {
    return this.#sealing.id;
  }

  /** Ids of the keys that only open what was sealed before. */
  get olderKeyIds(): string[] {
    return [...this.#keys.keys()].filter((id) => id !== this.#sealing.id);
  }

  /** Whether an envelope names the key that seals now; only opening it tells whether that is true. */
  isCurrent(envelope: string): boolean {
    return ENVELOPE.exec(envelope)?.[1] === this.#sealing.id;
  }

  /** Encrypts a text for one place. */
  seal(text: string, place: SealedFor): string {
    this.#onSecret(text);
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
    const what = `The stored ${place.purpose.replace('_', ' ')}`;
    const [, keyId = '', data = ''] = ENVELOPE.exec(envelope) ?? [];
    const sealed = Buffer.from(data, 'base64url');
    // Decoding passes over what does not belong there; an envelope is only what was written.
    if (sealed.length < IV_BYTES + TAG_BYTES || sealed.toString('base64url') !== data) {
      throw new VaultError(`${what} is damaged.`, { isLost: true });
    }
    const key = this.#keys.get(keyId);
    if (key === undefined) {
      throw new VaultError(
        `${what} was encrypted with the key "${keyId}", which TOKEN_KEYS does not hold: whoever runs this app has to put that key back.`,
        { isLost: false },
      );
    }
    const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, IV_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(associatedData(place, keyId));
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    try {
      const bytes = decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES));
      const text = Buffer.concat([bytes, decipher.final()]).toString('utf8');
      this.#onSecret(text);
      return text;
    } catch (error) {
      throw new VaultError(`${what} was changed, or belongs elsewhere.`, { cause: error, isLost: true });
    }
  }
}

function associatedData({ instanceId, purpose }: SealedFor, keyId: string): Buffer {
  return Buffer.from(JSON.stringify([VERSION, keyId, instanceId, purpose]), 'utf8');
}
