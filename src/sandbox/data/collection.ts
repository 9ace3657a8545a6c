import { IdSeries } from './ids.ts';
import { mix32 } from './random.ts';

/** About how many records lie between two short pages. */
const SHORT_PAGE_DISTANCE = 800;
/** No short page before this record: the first pages of a list are full. */
const FIRST_SHORT_PAGE_AT = 400;

/** A record as the service shows it. */
export type Document = Readonly<Record<string, unknown>> & { readonly id: string };

/** Who owns a collection: what ids and content are made of. */
export interface Owner {
  /** Five characters of the company, see `companyCode`. */
  code: string;
  /** The company's 32-bit seed. */
  seed: number;
}

/**
 * Records of one kind in one company, in the order of the list routes. Nothing is kept in memory: a record is made from
 * the company's seed and its index when it is read, so a million of them cost nothing until then, and a page at any
 * depth costs as much as the first.
 */
export class Collection {
  readonly count: number;
  readonly #ids: IdSeries;
  readonly #build: (index: number, id: string, baseUrl: string) => Document;
  readonly #firstCut: number;

  /**
   * @param count how many records there are
   * @param build makes the record with this index; `baseUrl` is `{base_url}`, for links
   */
  constructor(
    prefix: string,
    owner: Owner,
    count: number,
    build: (index: number, id: string, baseUrl: string) => Document,
  ) {
    this.count = count;
    this.#ids = new IdSeries(prefix, owner.code, owner.seed);
    this.#build = build;
    this.#firstCut = FIRST_SHORT_PAGE_AT + (mix32(owner.seed ^ count) % 300);
  }

  /** The id of the record with this index. */
  idAt(index: number): string {
    return this.#ids.id(index);
  }

  /** The record with this id, or undefined when there is none. */
  find(id: string, baseUrl: string): Document | undefined {
    const index = this.#ids.index(id);
    return index !== undefined && index < this.count ? this.#build(index, id, baseUrl) : undefined;
  }

  /**
   * The records of one page, from a position on, and where the next page starts (undefined after the last).
   *
   * Now and then a page holds fewer than `limit`, as after deletions; that is no end (Pagination, 4). This happens at
   * fixed places of the list: a page that would run across one ends there.
   */
  page(
    position: number,
    limit: number,
    baseUrl: string,
  ): { documents: Document[]; next: number | undefined } {
    const end = Math.min(position + limit, this.count, this.#cutAfter(position));
    const documents: Document[] = [];
    for (let index = position; index < end; index++) {
      documents.push(this.#build(index, this.#ids.id(index), baseUrl));
    }
    return { documents, next: end < this.count ? end : undefined };
  }

  #cutAfter(position: number): number {
    if (position < this.#firstCut) return this.#firstCut;
    const passed = Math.floor((position - this.#firstCut) / SHORT_PAGE_DISTANCE) + 1;
    return this.#firstCut + passed * SHORT_PAGE_DISTANCE;
  }
}
