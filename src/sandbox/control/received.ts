import { isDeepStrictEqual } from 'node:util';
import { Problem } from '../http/answer.ts';
import { matchPath } from '../http/router.ts';
import { blanked, bodyOf, isSecret, type Journal, type Received } from '../journal.ts';
import type { JournalRow, WantedRequest } from '../types.ts';

const SHOWN_MAX = 200;

/** A matcher of Vitest's or Jest's, like `expect.any(String)`. */
interface Matcher {
  asymmetricMatch(given: unknown): boolean;
  /** What it was made with. */
  sample?: unknown;
}

const isMatcher = (value: unknown): value is Matcher =>
  typeof (value as Partial<Matcher> | null)?.asymmetricMatch === 'function';

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof RegExp);

function shown(value: unknown): string {
  if (isMatcher(value)) return value.sample === undefined ? String(value) : `${value} ${shown(value.sample)}`;
  const text = value instanceof RegExp ? String(value) : JSON.stringify(blanked(value));
  return (text ?? 'nothing').slice(0, SHOWN_MAX);
}

/** Where a value is not as wanted, a line each. */
function differences(place: string, wanted: unknown, given: unknown): string[] {
  if (isMatcher(wanted) ? wanted.asymmetricMatch(given) : isDeepStrictEqual(wanted, given)) return [];
  if (wanted instanceof RegExp && wanted.test(String(given))) return [];
  if (isObject(wanted) && !isMatcher(wanted) && isObject(given)) {
    return Object.entries(wanted).flatMap(([name, value]) =>
      differences(`${place}.${name}`, value, given[name]),
    );
  }
  if (Array.isArray(wanted) && Array.isArray(given) && wanted.length === given.length) {
    return wanted.flatMap((value, at) => differences(`${place}.${at}`, value, given[at]));
  }
  const came = isSecret(place.slice(place.lastIndexOf('.') + 1)) ? 'a secret' : shown(given);
  return [`${place}: ${shown(wanted)} was wanted, and ${came} came`];
}

/** Where a request is not as wanted: none for one that is. @param sent undefined if it is not kept any more */
function compare(row: JournalRow, sent: Received | undefined, wanted: WantedRequest): string[] {
  const { path = row.path, query = row.query } = sent ?? {};
  const lines: string[] = [];
  const need = (place: string, value: unknown, given: () => unknown) => {
    if (value !== undefined) lines.push(...differences(place, value, given()));
  };
  need('method', wanted.method?.toUpperCase(), () => row.method);
  if (wanted.path !== undefined && matchPath(wanted.path, path) === undefined) {
    need('path', wanted.path, () => path);
  }
  need('query', wanted.query, () => query);
  const fields = Object.entries(wanted.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]);
  need('headers', isMatcher(wanted.headers) ? wanted.headers : Object.fromEntries(fields), () => {
    return fields.length === 0 && !isMatcher(wanted.headers) ? {} : sent?.headers;
  });
  need('body', wanted.body, () => sent && bodyOf(sent));
  need('status', wanted.status, () => row.status);
  return lines;
}

/** Another route is further away than any other difference. */
function distance(lines: string[]): number {
  return lines.length + 100 * lines.filter((line) => /^(method|path):/.test(line)).length;
}

/**
 * The newest request that is as wanted. Throws a {@link Problem} (404) that names the nearest, and what is different
 * there, if there is none, or if they are not as many as wanted.
 */
export function findReceived(journal: Journal, wanted: WantedRequest): JournalRow {
  const compared = journal
    .after(0)
    .map((row) => ({ row, lines: compare(row, journal.received(row), wanted) }))
    .reverse();
  const found = compared.filter(({ lines }) => lines.length === 0);
  const { times = Math.max(1, found.length) } = wanted;
  const { row } = found[0] ?? {};
  if (row !== undefined && found.length === times) return journal.detailed(row);
  const asked = `${wanted.method?.toUpperCase() ?? 'any method'} ${wanted.path ?? 'of any path'}`;
  if (found.length > 0) {
    const isForgotten = compared.some(({ row }) => journal.received(row) === undefined);
    const hint = isForgotten ? ' Headers and bodies of the oldest requests are not kept any more.' : '';
    throw new Problem(404, `${found.length} requests are as wanted (${asked}), not ${times}.${hint}`);
  }
  const nearest = compared.toSorted((one, other) => distance(one.lines) - distance(other.lines))[0];
  if (nearest === undefined) throw new Problem(404, 'No request has come yet.');
  const { n, method, path } = nearest.row;
  const head = `No request is as wanted (${asked}). The nearest of ${compared.length} is ${n}, ${method} ${path}:`;
  throw new Problem(404, [head, ...nearest.lines].join('\n  '));
}
