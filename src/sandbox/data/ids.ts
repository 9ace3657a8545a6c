import { hashText, mix32, unmix32 } from './random.ts';

const CODE_LENGTH = 5;
const CODES = 36 ** CODE_LENGTH;
/** Odd and no multiple of three, so it shares no factor with 36^5 and every ordinal gets a code of its own. */
const CODE_STEP = 22_695_479;
/** Two digits at once: `00` to `zz`. */
const PAIRS = Array.from({ length: 36 ** 2 }, (_, number) => number.toString(36).padStart(2, '0'));
const DIGITS = PAIRS.map((pair) => pair.slice(1));

/** Who owns records: what their ids and content are made of. */
export interface Owner {
  /** Five characters of the company, see {@link companyCode}. */
  code: string;
  /** The company's 32-bit seed. */
  seed: number;
}

/** A 32-bit number in seven digits of base 36: a tenth of the time that `toString` needs, and every record has an id. */
function base36(number: number): string {
  const upper = Math.floor(number / PAIRS.length);
  const high = Math.floor(upper / PAIRS.length);
  const [first, second] = [DIGITS[Math.floor(high / PAIRS.length)], PAIRS[high % PAIRS.length]];
  return `${first}${second}${PAIRS[upper % PAIRS.length]}${PAIRS[number % PAIRS.length]}`;
}

/**
 * Five characters that stand for a company in the ids of all that it owns, so that no two companies share an id.
 *
 * @param ordinal 1 for the first company, and so on; below 36^5
 */
export function companyCode(ordinal: number): string {
  return ((ordinal * CODE_STEP) % CODES).toString(36).padStart(CODE_LENGTH, '0');
}

/** Ids of one kind in one company: scattered like a real service's, and each leads back to its index. */
export class IdSeries {
  readonly #start: string;
  readonly #seed: number;

  /** @param prefix the kind, like `crd` */
  constructor(prefix: string, { code, seed }: Owner) {
    this.#start = `${prefix}_${code}`;
    this.#seed = seed ^ hashText(prefix);
  }

  /** The id of the thing with this index (0 to 2^32 - 1). */
  id(index: number): string {
    return this.#start + base36(mix32(index ^ this.#seed));
  }

  /** The index that the id was made of, or undefined when the id is not of this kind and company. */
  index(id: string): number | undefined {
    if (!id.startsWith(this.#start)) return undefined;
    const number = Number.parseInt(id.slice(this.#start.length), 36);
    if (!(number < 0x1_0000_0000)) return undefined;
    const index = (unmix32(number) ^ this.#seed) >>> 0;
    return this.id(index) === id ? index : undefined;
  }
}
