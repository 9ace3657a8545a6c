import { isDeepStrictEqual } from 'node:util';
import { Problem } from '../http/answer.ts';
import { matchPath } from '../http/router.ts';
import { bodyOf, type Content, type Journal } from '../journal.ts';
import type { JournalRow, WantedRequest } from '../types.ts';

const SHOWN_MAX = 200;

/** A matcher of Vitest's or Jest's, like `expect.any(String)`. */
const isMatcher = (value: unknown): value is { asymmetricMatch(given: unknown): boolean } =>
  typeof (value as { asymmetricMatch?: unknown } | null)?.asymmetricMatch === 'function';

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof RegExp);

function shown(value: unknown): string {
  const text = value instanceof RegExp || isMatcher(value) ? String(value) : JSON.stringify(value);
  return (text ?? 'nothing').slice(0, SHOWN_MAX);
}

/** Where a value is not as wanted, a line each. */
function differences(place: string, wanted: unknown, given: unknown): string[] {
  if (isObject(wanted) && !isMatcher(wanted)) {
    const members = isObject(given) ? given : {};
    return Object.entries(wanted).flatMap(([name, value]) =>
      differences(place === '' ? name : `${place}.${name}`, value, members[name]),
    );
  }
  if (isMatcher(wanted) && wanted.asymmetricMatch(given)) return [];
  if (wanted instanceof RegExp && wanted.test(String(given))) return [];
  if (Array.isArray(wanted) && Array.isArray(given) && wanted.length === given.length) {
    return wanted.flatMap((value, at) => differences(`${place}.${at}`, value, given[at]));
  }
  if (isDeepStrictEqual(wanted, given)) return [];
  return [`${place}: ${shown(wanted)} was wanted, and ${shown(given)} came`];
}

/** Where a request is not as wanted: none for one that is. */
function compare(row: JournalRow, sent: Content | undefined, wanted: WantedRequest): string[] {
  const { method = row.method, path = row.path, times: _, headers = {}, ...more } = wanted;
  const fields = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  const given = { query: row.query, headers: sent?.headers, status: row.status, body: sent && bodyOf(sent) };
  return [
    ...differences('method', method.toUpperCase(), row.method),
    ...(matchPath(path, row.path) === undefined ? differences('path', path, row.path) : []),
    ...differences('', { ...more, ...(fields.length > 0 && { headers: Object.fromEntries(fields) }) }, given),
  ];
}

/**
 * The newest request that is as wanted. Throws a {@link Problem} (404) that names the nearest, and what is different
 * there, if there is none, or if they are not as many as wanted.
 */
export function findReceived(journal: Journal, wanted: WantedRequest): JournalRow {
  const compared = journal
    .after(0)
    .map((row) => ({ row, lines: compare(row, journal.requestOf(row), wanted) }))
    .reverse();
  const found = compared.filter(({ lines }) => lines.length === 0);
  const { times = Math.max(1, found.length) } = wanted;
  const { row } = found[0] ?? {};
  if (row !== undefined && found.length === times) return journal.detailed(row);
  const asked = `${wanted.method?.toUpperCase() ?? 'any method'} ${wanted.path ?? 'of any path'}`;
  if (found.length > 0) {
    throw new Problem(404, `${found.length} requests are as wanted (${asked}), not ${times}.`);
  }
  const nearest = compared.toSorted((one, other) => one.lines.length - other.lines.length)[0];
  if (nearest === undefined) throw new Problem(404, 'No request has come yet.');
  const { n, method, path } = nearest.row;
  const head = `No request is as wanted (${asked}). The nearest of ${compared.length} is ${n}, ${method} ${path}:`;
  throw new Problem(404, [head, ...nearest.lines].join('\n  '));
}
