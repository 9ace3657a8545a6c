import { IdSeries } from './ids.ts';
import { innerBytes, type JsonBytes, jsonBytes } from './json-bytes.ts';
import { mix32 } from './random.ts';

/** About how many records lie between two short pages. */
const SHORT_PAGE_DISTANCE = 800;
/** No short page before this record: the first pages of a list are full. */
const FIRST_SHORT_PAGE_AT = 400;
/** As many records are looked at for one page of those that meet a condition: a page may be short, or empty. */
const LOOKED_AT_MAX = 20_000;

/** A record as it is kept: without links, as these depend on how the client reached the service. */
export type Document = Readonly<Record<string, unknown>> & { readonly id: string };

/** Who owns a collection: what ids and content are made of. */
export interface Owner {
  /** Five characters of the company, see `companyCode`. */
  code: string;
  /** The company's 32-bit seed. */
  seed: number;
}

/** Who looks at records, and when: some of them show more, or something else, then. */
export interface View {
  /** Whether the caller reaches what is shared alone, no private resources (Authentication, 9). */
  isShared: boolean;
  /** The service's time, in ms since 1970. */
  now: number;
}

/** What the records of one kind are. */
export interface Kind<D extends Document> {
  /** First letters of the ids. */
  prefix: string;
  /** Makes the record with this index: the same one whenever it is read. */
  build(index: number, id: string): D;
  /** The record as the API shows it. @param baseUrl `{base_url}` as the client reached it, for links */
  present(document: D, baseUrl: string, view: View): object;
  /**
   * For kinds of which there may be a million, all shared: the JSON of `present(build(index, id), …)` without making
   * either. @param base `{base_url}` as it stands in JSON
   */
  text?(index: number, id: string, base: JsonBytes): JsonBytes;
}

/** What a collection is beside what is generated: plain data, so that it can be copied. */
export interface CollectionState {
  /** Records that are not as generated, by index; null for those that were deleted. */
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

/** One page of a list: the records' JSON, and where the next page starts (undefined after the last). */
export interface PageOfTexts {
  texts: JsonBytes[];
  next: number | undefined;
}

function greatestCommonDivisor(left: number, right: number): number {
  return right === 0 ? left : greatestCommonDivisor(right, left % right);
}

/**
 * Records of one kind in one company, in the order of the list routes. Only what was changed is in memory: every other
 * record is made from the company's seed and its index when it is read, so a million of them cost nothing until then,
 * and a page at any depth costs as much as the first.
 */
export class Collection<D extends Document = Document> {
  readonly #kind: Kind<D>;
  readonly #generated: number;
  readonly #ids: IdSeries;
  readonly #firstCut: number;
  #state: CollectionState = { changed: new Map(), added: 0, deleted: 0, order: undefined };

  /** @param generated how many records there are at start */
  constructor(kind: Kind<D>, owner: Owner, generated: number) {
    this.#kind = kind;
    this.#generated = generated;
    this.#ids = new IdSeries(kind.prefix, owner.code, owner.seed);
    this.#firstCut = FIRST_SHORT_PAGE_AT + (mix32(owner.seed ^ generated) % 300);
  }

  /** Plain data; what is set is taken over, not copied. */
  get state(): CollectionState {
    return this.#state;
  }

  set state(state: CollectionState) {
    this.#state = state;
  }

  /** How many records there are. */
  get count(): number {
    return this.#size - this.#state.deleted;
  }

  /** Records that there ever were: also the first index that is free. */
  get #size(): number {
    return this.#generated + this.#state.added;
  }

  /** The id of the record with this index, deleted or not. */
  idAt(index: number): string {
    return this.#ids.id(index);
  }

  /** How long the list is, with the places of deleted records. */
  get places(): number {
    return this.#size;
  }

  /** The record at a place of the list, or undefined when it was deleted. */
  atPlace(place: number): D | undefined {
    return this.#at(this.#indexAt(place));
  }

  /** The id at a place of the list, deleted or not. */
  idAtPlace(place: number): string {
    return this.idAt(this.#indexAt(place));
  }

  /** The record with this id, or undefined when there is none. */
  find(id: string): D | undefined {
    const index = this.#indexOf(id);
    return index === undefined ? undefined : this.#at(index);
  }

  /** All records: for kinds of which a company has few. @param most as many are looked at, the newest */
  all(most = Number.POSITIVE_INFINITY): D[] {
    const first = Math.max(0, this.#size - most);
    return Array.from({ length: this.#size - first }, (_, place) => this.#at(first + place)).filter(
      (document) => document !== undefined,
    );
  }

  /** Adds a record at the end. @param make what it is, once its id is known; as one of those at start when left out */
  add(make: (id: string, index: number) => D = (id, index) => this.#kind.build(index, id)): D {
    const index = this.#size;
    const document = make(this.#ids.id(index), index);
    this.#state.changed.set(index, document);
    this.#state.added += 1;
    return document;
  }

  /** Puts a changed record in the place of what has its id. */
  replace(document: D): D {
    const index = this.#indexOf(document.id);
    if (index === undefined) throw new RangeError(`no record ${document.id}`);
    this.#state.changed.set(index, document);
    return document;
  }

  /** Deletes a record; its place in the list stays empty. @returns whether there was one */
  delete(id: string): boolean {
    const index = this.#indexOf(id);
    if (index === undefined || this.#at(index) === undefined) return false;
    this.#state.changed.set(index, null);
    this.#state.deleted += 1;
    return true;
  }

  /** Puts the list into another order, which costs no memory. The same seed gives the same one. */
  reorder(seed: number): void {
    const size = this.#size;
    if (size < 2) return;
    let step = 1 + (mix32(seed) % (size - 1));
    while (greatestCommonDivisor(step, size) !== 1) step = 1 + (step % (size - 1));
    this.#state.order = { size, step, offset: mix32(seed ^ size) % size };
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
   */
  page(position: number, limit: number, baseUrl: string, view: View): PageOfTexts {
    const size = this.#size;
    const end = Math.min(position + limit, size, this.#cutAfter(position));
    const base = innerBytes(baseUrl);
    const texts: JsonBytes[] = [];
    for (let place = position; place < end; place++) {
      const index = this.#indexAt(place);
      const text = this.#textAt(index, base) ?? this.#jsonAt(index, baseUrl, view);
      if (text !== undefined) texts.push(text);
    }
    return { texts, next: end < size ? end : undefined };
  }

  /** As {@link page}, of those records that meet a condition. */
  pageWhere(
    position: number,
    limit: number,
    baseUrl: string,
    view: View,
    where: (document: D) => boolean,
  ): PageOfTexts {
    const size = this.#size;
    const end = Math.min(position + LOOKED_AT_MAX, size);
    const texts: JsonBytes[] = [];
    let place = position;
    for (; place < end && texts.length < limit; place++) {
      const document = this.#at(this.#indexAt(place));
      if (document === undefined || (view.isShared && document.is_private === true)) continue;
      if (where(document)) texts.push(jsonBytes(this.#kind.present(document, baseUrl, view)));
    }
    return { texts, next: place < size ? place : undefined };
  }

  #indexOf(id: string): number | undefined {
    const index = this.#ids.index(id);
    return index !== undefined && index < this.#size ? index : undefined;
  }

  #indexAt(place: number): number {
    const { order } = this.#state;
    if (order === undefined || place >= order.size) return place;
    return (place * order.step + order.offset) % order.size;
  }

  #at(index: number): D | undefined {
    const changed = this.#state.changed.get(index);
    // What is kept is of this kind: only `add` and `replace` put it there.
    if (changed !== undefined) return (changed as D | null) ?? undefined;
    return this.#kind.build(index, this.#ids.id(index));
  }

  /** The JSON of a record that is as generated, if its kind writes it. */
  #textAt(index: number, base: JsonBytes): JsonBytes | undefined {
    const { text } = this.#kind;
    if (text === undefined || this.#state.changed.has(index)) return undefined;
    return text(index, this.#ids.id(index), base);
  }

  /** The JSON of a record, unless it was deleted or the caller does not reach it. */
  #jsonAt(index: number, baseUrl: string, view: View): JsonBytes | undefined {
    const document = this.#at(index);
    if (document === undefined || (view.isShared && document.is_private === true)) return undefined;
    return jsonBytes(this.#kind.present(document, baseUrl, view));
  }

  #cutAfter(position: number): number {
    if (position < this.#firstCut) return this.#firstCut;
    const passed = Math.floor((position - this.#firstCut) / SHORT_PAGE_DISTANCE) + 1;
    return this.#firstCut + passed * SHORT_PAGE_DISTANCE;
  }
}
