import { hash } from 'node:crypto';
import { PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX } from '../../contract/limits.ts';
import type { Collection, PageStart, Slice } from '../data/collection.ts';
import type { Document } from '../data/record.ts';
import { jsonText, Problem } from '../http/answer.ts';
import { type ApiContext, Ready, type RecordOf, type Table } from './request.ts';

/** Always the same, so that a `next` URL works on after a restart; it keeps out mistakes, not attackers. */
const KEY = 'sandbox page token';
const POSITION_BYTES = 6;
const DATA_BYTES = POSITION_BYTES + 1;
const SEAL_BYTES = 8;

/** An opaque page token. @param list company and path: the token is valid for nothing else */
export function writePageToken(list: string, { position, limit }: PageStart): string {
  const data = Buffer.alloc(DATA_BYTES);
  data.writeUIntBE(position, 0, POSITION_BYTES);
  data.writeUInt8(limit, POSITION_BYTES);
  // The list cannot run into the data, which has a fixed length.
  const seal = hash('sha256', `${KEY}\0${list}\0${data.toString('hex')}`, 'buffer');
  return Buffer.concat([data, seal.subarray(0, SEAL_BYTES)]).toString('base64url');
}

/** Reads a page token; undefined when it is not one of this list, or was changed. */
function readPageToken(list: string, token: string): PageStart | undefined {
  const bytes = Buffer.from(token, 'base64url');
  if (bytes.length !== DATA_BYTES + SEAL_BYTES) return undefined;
  const start = { position: bytes.readUIntBE(0, POSITION_BYTES), limit: bytes.readUInt8(POSITION_BYTES) };
  return writePageToken(list, start) === token ? start : undefined;
}

/** Where a page starts. A limit over the maximum is an error, not clamped: our choice, the specification is silent. */
function pageStart(query: URLSearchParams, list: string): PageStart {
  for (const name of ['limit', 'page_token']) {
    if (query.getAll(name).length > 1) throw new Problem(400, `${name} is given more than once.`);
  }
  const token = query.get('page_token');
  const text = query.get('limit') ?? `${PAGE_LIMIT_DEFAULT}`;
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > PAGE_LIMIT_MAX) {
    throw new Problem(400, `limit must be a whole number from 1 to ${PAGE_LIMIT_MAX}.`);
  }
  if (token === null) return { position: 0, limit };
  const start = readPageToken(list, token);
  if (start === undefined) throw new Problem(400, 'page_token is not one of this list.');
  if (query.has('limit') && limit !== start.limit) {
    throw new Problem(400, `page_token belongs to a list with the limit ${start.limit}.`);
  }
  return start;
}

/** A path or query as it may stand in a URI (RFC 3986): Node takes more, and tells each byte as a character. */
function uriPart(text: string): string {
  return text.replace(
    /[^\w\-.~!$&'()*+,;=:@/?%]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  );
}

/**
 * A page of a list (Endpoints, "Pagination"): `next` is a full URL that carries the original limit, or null at the end,
 * and `self` is the URL as requested. A page token is good for one company, list and limit.
 */
function paged({ call, company }: ApiContext, read: (start: PageStart, baseUrl: string) => Slice): Ready {
  const path = uriPart(call.path);
  const list = `${company.id} ${path}`;
  const { position, limit } = pageStart(call.query, list);
  const { results, next } = read({ position, limit }, call.baseUrl);
  const here = `${call.baseUrl}${path}`;
  const token = next === undefined ? undefined : writePageToken(list, { position: next, limit });
  const head = {
    _pagination: { next: token === undefined ? null : `${here}?limit=${limit}&page_token=${token}` },
    _links: { self: here + uriPart(call.search) },
  };
  return new Ready(jsonText(200, `${JSON.stringify(head).slice(0, -1)},"_results":[${results.join()}]}`));
}

/** A page of all that the caller may reach. @param where a condition that the records have to meet */
export function listPage<Name extends Table>(
  request: ApiContext,
  table: Name,
  where?: (record: RecordOf<Name>) => boolean,
): object {
  const collection: Collection = request.tables[table];
  return paged(request, (start, baseUrl) =>
    collection.page(start, baseUrl, request.view, where as (record: Document) => boolean),
  );
}

/** A page of records that are named one by one, in that order; a deleted one leaves its place empty. */
export function listNamed(request: ApiContext, table: Table, ids: readonly string[]): object {
  return paged(request, ({ position, limit }) => {
    const end = position + limit;
    const found = ids.slice(position, end).map((id) => request.tables[table].find(id));
    const results = found.flatMap((record) =>
      record === undefined ? [] : [JSON.stringify(request.show(table, record))],
    );
    return { results, next: end < ids.length ? end : undefined };
  });
}
