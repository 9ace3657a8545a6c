import { Problem } from '../http/answer.ts';
import type { ListOrder } from '../types.ts';
import { IdSeries, type Owner } from './ids.ts';
import { mix32 } from './random.ts';
import type { Document, Kind, View } from './record.ts';

/** About how many records lie between two short pages. */
const SHORT_PAGE_DISTANCE = 800;
/** No short page before this record: the first pages of a list are full. */
const FIRST_SHORT_PAGE_AT = 400;
/** As many records are looked at for one page of those that meet a condition: a page may be short, or empty. */
const LOOKED_AT_MAX = 20_000;
/** The place of the first unmoved record of a list by activity: moved records come before it. */
const FIRST_UNMOVED = 2 ** 40;
/** So many places that records left are passed again and again; a longer way is remembered. */
const STEPS_MAX = 100;
/** A place that a record left. */
const LEFT = -1;

/** A record that a collection has at start; without an id of its own it is given one. */
export type Literal<D extends Document> = {
  readonly [Name in keyof D as Exclude<Name, 'id'>]: D[Name];
} & { readonly id?: string };

/** What a collection is beside what it had at start: plain data, so that it can be copied. */
export interface CollectionState {
  /** Records that are not as at start, by index; null for those that were deleted. */
  changed: Map<number, Document | null>;
  added: number;
  deleted: number;
  permutation: Permutation | undefined;
  /** In a list by activity: indexes of moved records, the last one first in the list, and {@link LEFT}. */
  moves: number[];
  /** Where in `moves` a record stands, by its index. */
  moved: Map<number, number>;
  /** The first held place behind many that were left, by the first of those: no one comes back to a place. */
  skips: Map<number, number>;
}

/** Another order of the unmoved records: the nth place holds the record (nth × step + offset) mod size. */
interface Permutation {
  size: number;
  step: number;
  offset: number;
}

/** Where a page starts, and how many results it may hold. */
export interface PageStart {
  position: number;
  limit: number;
}

/** One page of a list: the records' JSON as the API shows them, and where the next page starts (undefined after the last). */
export interface Slice {
  results: string[];
  next: number | undefined;
}

/** JSON of contacts and conversations that did not change, of all collections: most of a page's time is to make it. */
const TEXTS = new Map<string, string>();
const TEXTS_MAX = 20_000;
let collections = 0;

function greatestCommonDivisor(left: number, right: number): number {
  return right === 0 ? left : greatestCommonDivisor(right, left % right);
}

/**
 * Records of one kind in one company, in the order of the list routes. Only what was changed is in memory: a generated
 * record is made from the company's seed and its index when it is read, so a million of them cost nothing until then,
 * and a page at any depth costs as much as the first.
 *
 * A list by creation begins with the oldest record. A list by activity begins with the one that moved last:
 *
 *     place   FIRST_UNMOVED - 2   FIRST_UNMOVED - 1   FIRST_UNMOVED        FIRST_UNMOVED + 1   …
 *     holds   moves[1]            moves[0]            the newest at start  the one before it   …
 *
 * A record that moves leaves its place for a new one at the front. No other record gets another place, so a page token,
 * which is a place, stays valid.
 */
export class Collection<D extends Document = Document> {
  /** Plain data; what is set is taken over, not copied. */
  state: CollectionState = {
    changed: new Map(),
    added: 0,
    deleted: 0,
    permutation: undefined,
    moves: [],
    moved: new Map(),
    skips: new Map(),
  };
  readonly #kind: Kind<D>;
  readonly #generate: ((index: number, id: string) => D) | undefined;
  readonly #ids: IdSeries;
  readonly #startCount: number;
  /** Records at start that are not generated, and the indexes of those with a chosen id. */
  readonly #literals: D[] = [];
  readonly #chosen = new Map<string, number>();
  readonly #firstCut: number;
  readonly #isByActivity: boolean;
  readonly #number = collections++;
  /** Indexes of literal records in a list by activity: the last change first, equal ones as they were given. */
  readonly #byChange: readonly number[] = [];

  /**
   * @param start how many records are generated, or all that there are at start
   * @param generate makes the record with an index: the same one whenever it is read, and not older than the one before
   * Throws a {@link Problem} (400) for an id that is chosen twice, or that the collection gives out itself.
   */
  constructor(
    kind: Kind<D>,
    owner: Owner,
    start: number | readonly Literal<D>[],
    generate?: (index: number, id: string) => D,
    order: ListOrder = 'created',
  ) {
    this.#kind = kind;
    this.#generate = generate;
    this.#ids = new IdSeries(kind.prefix, owner);
    this.#startCount = typeof start === 'number' ? start : start.length;
    this.#firstCut = FIRST_SHORT_PAGE_AT + (mix32(owner.seed ^ this.#startCount) % 300);
    if (typeof start !== 'number') for (const literal of start) this.#addLiteral(literal);
    this.#isByActivity = order === 'activity';
    if (this.#isByActivity) {
      const changes = this.#literals.map(({ updated_at }, index) => ({ index, at: Number(updated_at) }));
      this.#byChange = changes.sort((one, other) => other.at - one.at).map(({ index }) => index);
    }
  }

  #addLiteral({ id: chosen, ...members }: Literal<D>): void {
    const index = this.#literals.length;
    const id = chosen ?? this.#ids.id(index);
    if (id !== this.#ids.id(index)) {
      const isTaken = this.#chosen.has(id) || this.#ids.index(id) !== undefined;
      if (isTaken) throw new Problem(400, `The id ${id} is given to another record.`);
      this.#chosen.set(id, index);
    }
    this.#literals.push({ id, ...members } as unknown as D);
  }

  /** How many records there are. */
  get count(): number {
    return this.places - this.state.deleted;
  }

  /** How many records there ever were: also the first index that is free. */
  get places(): number {
    return this.#startCount + this.state.added;
  }

  /** The record with this index as it was at start, or as one that is generated. */
  original(index: number): D {
    const record = this.#literals[index] ?? this.#generate?.(index, this.#ids.id(index));
    if (record === undefined) throw new RangeError(`no record ${index} of ${this.#kind.prefix}`);
    return record;
  }

  /** The record that stands nth in the list, or would if no record had moved; undefined when it was deleted. */
  atStart(nth: number): D | undefined {
    const added = this.places - this.#unmoved;
    return this.#at(nth < added ? this.places - 1 - nth : this.#unmovedIndex(nth - added));
  }

  /** The record with this id, or undefined when there is none. */
  find(id: string): D | undefined {
    const index = this.#indexOf(id);
    return index === undefined ? undefined : this.#at(index);
  }

  /** All records: for kinds of which a company has few. @param most as many are looked at, the newest */
  all(most = Number.POSITIVE_INFINITY): D[] {
    const first = Math.max(0, this.places - most);
    return Array.from({ length: this.places - first }, (_, nth) => this.#at(first + nth)).filter(
      (document) => document !== undefined,
    );
  }

  /**
   * Adds a record: at the end, or by activity at the front.
   *
   * @param make what it is, once its id is known; a generated one when left out
   */
  add(make?: (id: string) => D): D {
    const index = this.places;
    const document = make?.(this.#ids.id(index)) ?? this.original(index);
    this.state.changed.set(index, document);
    this.state.added += 1;
    this.#move(index);
    return document;
  }

  /** Puts a changed record in the place of what has its id; by activity it moves to the front. */
  replace(document: D): D {
    const index = this.#indexOf(document.id);
    if (index === undefined) throw new RangeError(`no record ${document.id}`);
    this.state.changed.set(index, document);
    this.#move(index);
    return document;
  }

  /** Deletes a record; its place in the list stays empty. @returns whether there was one */
  delete(id: string): boolean {
    const index = this.#indexOf(id);
    if (index === undefined || this.#at(index) === undefined) return false;
    this.state.changed.set(index, null);
    this.state.deleted += 1;
    return true;
  }

  /** Puts the list into another order, with another record at its beginning; that costs no memory. @returns if it can */
  reorder(): boolean {
    const size = this.places;
    if (size < 2) return false;
    const before = this.#indexAt(this.#heldFrom(this.#front)) ?? 0;
    let step = 1 + (mix32(before + 1) % (size - 1));
    while (greatestCommonDivisor(step, size) !== 1) step = 1 + (step % (size - 1));
    const offset = (before + 1 + (mix32(before ^ size) % (size - 1))) % size;
    const unmoved = { moves: [], moved: new Map(), skips: new Map() };
    this.state = { ...this.state, ...unmoved, permutation: { size, step, offset } };
    return true;
  }

  /** The record as the API shows it. */
  present(document: D, baseUrl: string, view: View): object {
    return this.#kind.present(document, baseUrl, view);
  }

  /**
   * The records of one page, from a position on, and where the next page starts.
   *
   * Now and then a page holds fewer than `limit`, as after deletions; that is no end (Pagination, 4). This happens where
   * records were deleted, and at fixed places of the list: a page that would run across one ends there. Places that
   * moved records left make no page shorter.
   *
   * @param where a condition that the records have to meet
   */
  page(start: PageStart, baseUrl: string, view: View, where?: (document: D) => boolean): Slice {
    const { position, limit } = start;
    const most = where === undefined ? limit : LOOKED_AT_MAX;
    const results: string[] = [];
    let place = this.#heldFrom(Math.max(position, this.#front));
    const end = where === undefined ? this.#cutAfter(place) : this.#end;
    for (let looked = 0; place < end && looked < most && results.length < limit; looked++) {
      const text = this.#textOf(this.#indexAt(place) as number, baseUrl, view, where);
      place = this.#heldFrom(place + 1);
      if (text !== undefined) results.push(text);
    }
    return { results, next: place < this.#end ? place : undefined };
  }

  /** A record's JSON as the API shows it; undefined if it was deleted, is out of reach, or does not meet the condition. */
  #textOf(index: number, baseUrl: string, view: View, where?: (document: D) => boolean): string | undefined {
    const isAtStart = this.#generate !== undefined && !this.state.changed.has(index);
    const key = isAtStart && where === undefined ? `${this.#number} ${index} ${baseUrl}` : undefined;
    const known = key && TEXTS.get(key);
    if (known !== undefined) return known;
    const document = this.#at(index);
    if (document === undefined || (view.isShared && document.is_private === true)) return undefined;
    if (where?.(document) === false) return undefined;
    const text = JSON.stringify(this.#kind.present(document, baseUrl, view));
    if (key === undefined || document.is_private === true) return text;
    if (TEXTS.size === TEXTS_MAX) TEXTS.clear();
    TEXTS.set(key, text);
    return text;
  }

  #indexOf(id: string): number | undefined {
    const index = this.#chosen.get(id) ?? this.#ids.index(id);
    return index !== undefined && index < this.places && this.idAt(index) === id ? index : undefined;
  }

  /** The id of the record with this index, deleted or not. */
  idAt(index: number): string {
    return this.#literals[index]?.id ?? this.#ids.id(index);
  }

  /** The place of the first unmoved record. */
  get #origin(): number {
    return this.#isByActivity ? FIRST_UNMOVED : 0;
  }

  /** The first place of the list. */
  get #front(): number {
    return this.#origin - this.state.moves.length;
  }

  /** Behind the last place. */
  get #end(): number {
    return this.#origin + this.#unmoved;
  }

  /** How many places there are for records that did not move. */
  get #unmoved(): number {
    return this.#isByActivity ? (this.state.permutation?.size ?? this.#startCount) : this.places;
  }

  /** The first place from this one on that no record left. */
  #heldFrom(place: number): number {
    const { skips } = this.state;
    let held = place;
    let steps = 0;
    for (; held < this.#end && this.#indexAt(held) === undefined; steps++) held = skips.get(held) ?? held + 1;
    if (steps > STEPS_MAX) skips.set(place, held);
    return held;
  }

  /** The index of the record at a place; undefined if it left it. */
  #indexAt(place: number): number | undefined {
    const { moves, moved } = this.state;
    const nth = place - this.#origin;
    const index = nth < 0 ? moves[-1 - nth] : this.#unmovedIndex(nth);
    return index === LEFT || (nth >= 0 && moved.has(index as number)) ? undefined : index;
  }

  #unmovedIndex(nth: number): number {
    const { permutation } = this.state;
    if (permutation !== undefined && nth < permutation.size) {
      return (nth * permutation.step + permutation.offset) % permutation.size;
    }
    if (!this.#isByActivity) return nth;
    return this.#byChange[nth] ?? this.#startCount - 1 - nth;
  }

  /** Moves a record to the front of a list by activity, if it is not there. */
  #move(index: number): void {
    const { moves, moved } = this.state;
    const before = moved.get(index);
    if (!this.#isByActivity || (before !== undefined && before === moves.length - 1)) return;
    if (before !== undefined) moves[before] = LEFT;
    moved.set(index, moves.length);
    moves.push(index);
  }

  #at(index: number): D | undefined {
    const changed = this.state.changed.get(index);
    // What is kept is of this kind: only `add` and `replace` put it there.
    return changed === undefined ? this.original(index) : ((changed as D | null) ?? undefined);
  }

  #cutAfter(place: number): number {
    const first = this.#origin + this.#firstCut;
    const passed = Math.max(0, Math.floor((place - first) / SHORT_PAGE_DISTANCE) + 1);
    return Math.min(this.#end, first + passed * SHORT_PAGE_DISTANCE);
  }
}
