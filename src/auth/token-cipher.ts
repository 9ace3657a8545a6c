import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { ServiceError } from '../service/errors.ts';

/** A key that encrypts tokens at rest: 32 bytes, with the id that ciphertexts name it by. */
interface CipherKey {
  id: string;
  key: Buffer;
}

/** The row and column of a ciphertext. It decrypts nowhere else. */
export interface CipherContext {
  instanceId: string;
  column: 'access_token' | 'refresh_token';
}

/** TOKEN_KEYS gives an id to another key than this database knows under that id. */
export class WrongKeyError extends Error {
  override readonly name = 'WrongKeyError';
}

/** A ciphertext was changed, damaged or moved: the token is lost. The message is for administrators. */
export class DamagedTokenError extends Error {
  override readonly name = 'DamagedTokenError';
}

const ALGORITHM = 'aes-256-gcm';
const VERSION = 'v1';
const IV_BYTES = 12;
const TAG_BYTES = 16;
const CHECK_BYTES = 32;

/** `v1.<key id>.<data>`; a key id may hold dots. */
const CIPHERTEXT = /^v1\.([\w.-]{1,64})\.([\w-]+)$/;

/**
 * Encrypts tokens at rest with AES-256-GCM: `v1.<key id>.<iv, ciphertext and tag in base64url>`. The tag also covers key
 * id, instance and column.
 */
export class TokenCipher {
  readonly #first: CipherKey;
  readonly #keys: ReadonlyMap<string, Buffer>;

  /** @param keys the first encrypts, all decrypt */
  constructor(keys: readonly CipherKey[]) {
    const [first] = keys;
    if (first === undefined) throw new TypeError('A token cipher needs a key.');
    this.#first = first;
    this.#keys = new Map(keys.map(({ id, key }) => [id, key]));
  }

  /** The id of the key that encrypts. */
  get keyId(): string {
    return this.#first.id;
  }

  get keyIds(): string[] {
    return [...this.#keys.keys()];
  }

  encrypt(text: string, context: CipherContext): string {
    const { id, key } = this.#first;
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(ALGORITHM, key, iv, { authTagLength: TAG_BYTES });
    cipher.setAAD(associatedData(context, id));
    const bytes = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${VERSION}.${id}.${bytes.toString('base64url')}`;
  }

  /**
   * @throws ServiceError of kind `key_missing` when TOKEN_KEYS does not hold the key: the token is not lost
   * @throws DamagedTokenError
   */
  decrypt(ciphertext: string, context: CipherContext): string {
    const [, keyId = '', data = ''] = CIPHERTEXT.exec(ciphertext) ?? [];
    const bytes = Buffer.from(data, 'base64url');
    // Buffer.from skips characters that are not base64url. A changed ciphertext must not decrypt.
    if (bytes.length < IV_BYTES + TAG_BYTES || bytes.toString('base64url') !== data) throw damaged(context);
    const key = this.#keys.get(keyId);
    if (key === undefined) {
      const message = `The key "${keyId}" encrypted the tokens, and TOKEN_KEYS does not hold it. Put that key back.`;
      throw new ServiceError('key_missing', message);
    }
    const iv = bytes.subarray(0, IV_BYTES);
    const decipher = createDecipheriv(ALGORITHM, key, iv, { authTagLength: TAG_BYTES });
    decipher.setAAD(associatedData(context, keyId));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const text = decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8');
      return text + decipher.final('utf8');
    } catch (cause) {
      throw damaged(context, cause);
    }
  }

  /** Whether the first key encrypted a ciphertext. */
  isCurrent(ciphertext: string): boolean {
    return CIPHERTEXT.exec(ciphertext)?.[1] === this.keyId;
  }

  /**
   * Compares every key with the first key that this database saw under its id. A wrong key would make all tokens look
   * damaged.
   *
   * @param keep stores a value under a name unless the name has one, and returns the stored value
   * @throws WrongKeyError
   */
  async proveKeys(keep: (name: string, value: string) => Promise<string>): Promise<void> {
    for (const [id, key] of this.#keys) {
      const check = Buffer.from(hkdfSync('sha256', key, '', `key check: ${id}`, CHECK_BYTES));
      const value = check.toString('base64url');
      if ((await keep(`key check ${id}`, value)) === value) continue;
      throw new WrongKeyError(
        `TOKEN_KEYS holds a wrong key under the id "${id}": another one encrypted tokens in this database. Put the right key back (in development it is in .data/token-keys). A new key needs a new id: npm run keys makes both. If the key "${id}" is lost, remove it from TOKEN_KEYS; its companies must authorize the app again.`,
      );
    }
  }
}

function associatedData({ instanceId, column }: CipherContext, keyId: string): Buffer {
  return Buffer.from(JSON.stringify([VERSION, keyId, instanceId, column]), 'utf8');
}

function damaged({ column }: CipherContext, cause?: unknown): DamagedTokenError {
  return new DamagedTokenError(`The stored ${column.replace('_', ' ')} is damaged.`, { cause });
}
