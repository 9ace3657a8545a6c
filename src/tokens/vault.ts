import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/** A key that encrypts tokens at rest: 32 bytes, with the id that envelopes name it by. */
export interface VaultKey {
  id: string;
  key: Buffer;
}

/** What a sealed text is, and whose: it opens only as that. */
export interface SealedFor {
  instanceId: string;
  purpose: (typeof PURPOSES)[number];
}

/** A sealed text that cannot be opened. The message is for administrators and holds nothing of the text. */
export class VaultError extends Error {
  override readonly name = 'VaultError';
  /** Whether the text is lost (changed, damaged, moved); else it opens again as soon as its key is back. */
  readonly isLost: boolean;
  /** The key that did not open a whole envelope: it is lost only if that is the right one, see `key-checks.ts`. */
  readonly triedKeyId: string | undefined;
  /** The key that a whole envelope names and that is not there, if that is what is wrong. */
  readonly missing: { keyId: string; purpose: SealedFor['purpose'] } | undefined;

  constructor(
    message: string,
    options: ErrorOptions & Pick<VaultError, 'isLost'> & Partial<Pick<VaultError, 'triedKeyId' | 'missing'>>,
  ) {
    super(message, options);
    this.isLost = options.isLost;
    this.triedKeyId = options.triedKeyId;
    this.missing = options.missing;
  }
}

const ALGORITHM = 'aes-256-gcm';
const VERSION = 'v1';
const IV_BYTES = 12;
const TAG_BYTES = 16;
const CHECK_BYTES = 32;

const PURPOSES = ['access_token', 'refresh_token'] as const;

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

  /** Ids of all keys. */
  get keyIds(): string[] {
    return [...this.#keys.keys()];
  }

  /** Ids of the keys that only open what was sealed before. */
  get olderKeyIds(): string[] {
    return this.keyIds.filter((id) => id !== this.#sealing.id);
  }

  /** What tells the key of this id from others, and nothing about it; undefined without such a key. */
  checkValue(keyId: string): string | undefined {
    const key = this.#keys.get(keyId);
    if (key === undefined) return undefined;
    return Buffer.from(hkdfSync('sha256', key, '', `key check: ${keyId}`, CHECK_BYTES)).toString('base64url');
  }

  /** The id of the key that an envelope says it was sealed with. */
  keyIdOf(envelope: string): string | undefined {
    return ENVELOPE.exec(envelope)?.[1];
  }

  /** Whether an envelope names the key that seals now; only opening it tells whether that is true. */
  isCurrent(envelope: string): boolean {
    return this.keyIdOf(envelope) === this.#sealing.id;
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
    const what = called(place.purpose);
    const [, keyId = '', data = ''] = ENVELOPE.exec(envelope) ?? [];
    const sealed = Buffer.from(data, 'base64url');
    // Decoding passes over what does not belong there; an envelope is only what was written.
    if (sealed.length < IV_BYTES + TAG_BYTES || sealed.toString('base64url') !== data) {
      throw new VaultError(damaged(what), { isLost: true });
    }
    const key = this.#keys.get(keyId);
    if (key === undefined) {
      const missing = { keyId, purpose: place.purpose };
      throw new VaultError(withoutKey(what, keyId), { isLost: false, missing });
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
      throw new VaultError(changed(what), { cause: error, isLost: true, triedKeyId: keyId });
    }
  }
}

function associatedData({ instanceId, purpose }: SealedFor, keyId: string): Buffer {
  return Buffer.from(JSON.stringify([VERSION, keyId, instanceId, purpose]), 'utf8');
}

function called(purpose: SealedFor['purpose']): string {
  return `The stored ${purpose.replace('_', ' ')}`;
}

function withoutKey(what: string, keyId: string): string {
  return `${what} was encrypted with the key "${keyId}", which TOKEN_KEYS does not hold: whoever runs this app has to put that key back.`;
}

/** What is said of tokens that name a key which this database has no check value of: perhaps there never was one. */
export function unknownKeyMessage({ keyId, purpose }: NonNullable<VaultError['missing']>): string {
  return `${called(purpose)} names the key "${keyId}", which TOKEN_KEYS does not hold and this database does not know: either the key is missing, and whoever runs this app has to put it back, or the text was changed, and the company has to authorize the app again.`;
}

function changed(what: string): string {
  return `${what} was changed, or belongs elsewhere.`;
}

function damaged(what: string): string {
  return `${what} is damaged.`;
}

/** What is said of tokens whose key is missing, for each of these keys. */
export function missingKeyMessages(keyIds: readonly string[]): string[] {
  return keyIds.flatMap((keyId) =>
    PURPOSES.flatMap((purpose) => [
      withoutKey(called(purpose), keyId),
      unknownKeyMessage({ keyId, purpose }),
    ]),
  );
}

/** What is said of tokens that their key does not open, or that are no envelopes. */
export const CHANGED_MESSAGES: readonly string[] = PURPOSES.flatMap((purpose) => [
  changed(called(purpose)),
  damaged(called(purpose)),
]);
