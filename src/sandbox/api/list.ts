import { PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX } from '../../contract/limits.ts';
import type { Collection, Document, PageOfTexts } from '../data/collection.ts';
import { jsonBytes } from '../data/json-bytes.ts';
import { EncodedText, Problem } from '../http/answer.ts';
import { type PageStart, readPageToken, writePageToken } from './page-token.ts';
import { type ApiContext, Ready, show, viewOf } from './request.ts';

function single(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  if (values.length > 1) throw new Problem(400, `${name} is given more than once.`);
  return values[0];
}

/** The limit that a request names. Over the maximum is an error, not clamped: our choice, the specification is silent. */
function limitOf(query: URLSearchParams): number | undefined {
  const text = single(query, 'limit');
  if (text === undefined) return undefined;
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > PAGE_LIMIT_MAX) {
    throw new Problem(400, `limit must be a whole number from 1 to ${PAGE_LIMIT_MAX}.`);
  }
  return limit;
}

function pageStart(query: URLSearchParams, list: string): PageStart {
  const limit = limitOf(query);
  const token = single(query, 'page_token');
  if (token === undefined) return { position: 0, limit: limit ?? PAGE_LIMIT_DEFAULT };
  const start = readPageToken(list, token);
  if (start === undefined) throw new Problem(400, 'page_token is not one of this list.');
  if (limit !== undefined && limit !== start.limit) {
    throw new Problem(400, `page_token belongs to a list with the limit ${start.limit}.`);
  }
  return start;
}

/**
 * A page of a list (Endpoints, "Pagination"): `next` is a full URL that carries the original limit, or null at the end,
 * and `self` is the URL as requested. A page token is good for one company, list and limit.
 */
function paged(
  { call, company }: ApiContext,
  read: (start: PageStart, baseUrl: string) => PageOfTexts,
): Ready {
  const list = `${company.id} ${call.path}`;
  const start = pageStart(call.query, list);
  const { texts, next } = read(start, call.baseUrl);
  const { limit } = start;
  const here = `${call.baseUrl}${call.path}`;
  const nextUrl =
    next === undefined
      ? null
      : `${here}?limit=${limit}&page_token=${writePageToken(list, { position: next, limit })}`;
  const head = `{"_pagination":{"next":${jsonBytes(nextUrl)}},"_links":{"self":${jsonBytes(here + call.search)}}`;
  return new Ready({
    status: 200,
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: new EncodedText(`${head},"_results":[${texts.join(',')}]}`),
  });
}

/** A page of all that the caller may reach. */
export function listPage(request: ApiContext, collection: Collection): Ready {
  const view = viewOf(request);
  return paged(request, ({ position, limit }, baseUrl) => collection.page(position, limit, baseUrl, view));
}

/** A page of records that are named one by one, in that order; a deleted one leaves its place empty. */
export function listNamed<D extends Document>(
  request: ApiContext,
  collection: Collection<D>,
  ids: readonly string[],
): Ready {
  return paged(request, ({ position, limit }) => {
    const end = position + limit;
    const documents = ids
      .slice(position, end)
      .map((id) => collection.find(id))
      .filter((document) => document !== undefined);
    return {
      texts: documents.map((document) => jsonBytes(show(request, collection, document))),
      next: end < ids.length ? end : undefined,
    };
  });
}

/** A page of those that meet a condition, of what the caller may reach. */
export function listWhere<D extends Document>(
  request: ApiContext,
  collection: Collection<D>,
  where: (document: D) => boolean,
): Ready {
  const view = viewOf(request);
  return paged(request, ({ position, limit }, baseUrl) =>
    collection.pageWhere(position, limit, baseUrl, view, where),
  );
}
