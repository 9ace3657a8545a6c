import { Problem } from '../http/answer.ts';
import { IdSeries, type Owner } from './ids.ts';
import type { Document, Kind, View } from './kinds.ts';
import { mix32 } from './random.ts';

/** About how many records lie between two short pages. */
const SHORT_PAGE_DISTANCE = 800;
/** No short page before this record: the first pages of a list are full. */
const FIRST_SHORT_PAGE_AT = 400;
/** As many records are looked at for one page of those that meet a condition: a page may be short, or empty. */
const LOOKED_AT_MAX = 20_000;

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
  order: Order | undefined;
}

/** Another order of the list: its first `size` positions hold the records (position × step + offset) mod size. */
interface Order {
  size: number;
  step: number;
  offset: number;
}

/** Where a page starts, and how many results it may hold. */
export interface PageStart {
  position: number;
  limit: number;
}

/** One page of a list: the records as the API shows them, and where the next page starts (undefined after the last). */
export interface Slice {
  results: object[];
  next: number | undefined;
}

function greatestCommonDivisor(left: number, right: number): number {
  return right === 0 ? left : greatestCommonDivisor(right, left % right);
}

/**
 * Records of one kind in one company, in the order of the list routes. Only what was changed is in memory: a generated
 * record is made from the company's seed and its index when it is read, so a million of them cost nothing until then,
 * and a page at any depth costs as much as the first.
 */
export class Collection<D extends Document = Document> {
  /** Plain data; what is set is taken over, not copied. */
  state: CollectionState = { changed: new Map(), added: 0, deleted: 0, order: undefined };
  readonly #kind: Kind<D>;
  readonly #generate: ((index: number, id: string) => D) | undefined;
  readonly #ids: IdSeries;
  readonly #startCount: number;
  /** Records at start that are not generated, and the indexes of those with a chosen id. */
  readonly #literals: D[] = [];
  readonly #chosen = new Map<string, number>();
  readonly #firstCut: number;

  /**
   * @param start how many records are generated, or all that there are at start
   * @param generate makes the record with an index: the same one whenever it is read
   * Throws a {@link Problem} (400) for an id that is chosen twice, or that the collection gives out itself.
   */
  constructor(
    kind: Kind<D>,
    owner: Owner,
    start: number | readonly Literal<D>[],
    generate?: (index: number, id: string) => D,
  ) {
    this.#kind = kind;
    this.#generate = generate;
    this.#ids = new IdSeries(kind.prefix, owner);
    this.#startCount = typeof start === 'number' ? start : start.length;
    this.#firstCut = FIRST_SHORT_PAGE_AT + (mix32(owner.seed ^ this.#startCount) % 300);
    if (typeof start !== 'number') for (const literal of start) this.#addLiteral(literal);
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

  /** How long the list is, with the places of deleted records: also the first index that is free. */
  get places(): number {
    return this.#startCount + this.state.added;
  }

  /** The record with this index as it was at start, or as one that is generated. */
  original(index: number): D {
    const record = this.#literals[index] ?? this.#generate?.(index, this.#ids.id(index));
    if (record === undefined) throw new RangeError(`no record ${index} of ${this.#kind.prefix}`);
    return record;
  }

  /** The record at a place of the list, or undefined when it was deleted. */
  atPlace(place: number): D | undefined {
    return this.#at(this.#indexAt(place));
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

  /** Adds a record at the end. @param make what it is, once its id is known; a generated one when left out */
  add(make?: (id: string) => D): D {
    const index = this.places;
    const document = make?.(this.#ids.id(index)) ?? this.original(index);
    this.state.changed.set(index, document);
    this.state.added += 1;
    return document;
  }

  /** Puts a changed record in the place of what has its id. */
  replace(document: D): D {
    const index = this.#indexOf(document.id);
    if (index === undefined) throw new RangeError(`no record ${document.id}`);
    this.state.changed.set(index, document);
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
    const before = this.#indexAt(0);
    let step = 1 + (mix32(before + 1) % (size - 1));
    while (greatestCommonDivisor(step, size) !== 1) step = 1 + (step % (size - 1));
    this.state.order = { size, step, offset: (before + 1 + (mix32(before ^ size) % (size - 1))) % size };
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
   * records were deleted, and at fixed places of the list: a page that would run across one ends there.
   *
   * @param where a condition that the records have to meet
   */
  page(start: PageStart, baseUrl: string, view: View, where?: (document: D) => boolean): Slice {
    const { position, limit } = start;
    const size = this.places;
    const most = where === undefined ? limit : LOOKED_AT_MAX;
    const cut = where === undefined ? this.#cutAfter(position) : size;
    const end = Math.min(position + most, size, cut);
    const results: object[] = [];
    let place = position;
    for (; place < end && results.length < limit; place++) {
      const document = this.atPlace(place);
      if (document === undefined || (view.isShared && document.is_private === true)) continue;
      if (where?.(document) !== false) results.push(this.#kind.present(document, baseUrl, view));
    }
    return { results, next: place < size ? place : undefined };
  }

  #indexOf(id: string): number | undefined {
    const index = this.#chosen.get(id) ?? this.#ids.index(id);
    return index !== undefined && index < this.places && this.idAt(index) === id ? index : undefined;
  }

  /** The id of the record with this index, deleted or not. */
  idAt(index: number): string {
    return this.#literals[index]?.id ?? this.#ids.id(index);
  }

  #indexAt(place: number): number {
    const { order } = this.state;
    if (order === undefined || place >= order.size) return place;
    return (place * order.step + order.offset) % order.size;
  }

  #at(index: number): D | undefined {
    const changed = this.state.changed.get(index);
    // What is kept is of this kind: only `add` and `replace` put it there.
    return changed === undefined ? this.original(index) : ((changed as D | null) ?? undefined);
  }

  #cutAfter(position: number): number {
    if (position < this.#firstCut) return this.#firstCut;
    const passed = Math.floor((position - this.#firstCut) / SHORT_PAGE_DISTANCE) + 1;
    return this.#firstCut + passed * SHORT_PAGE_DISTANCE;
  }
}
