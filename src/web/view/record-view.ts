import { parseExactly } from '../../store/document-values.ts';
import { recordId } from '../../store/page-items.ts';
import type { StoredRecord } from '../../store/records.ts';
import type { WebResource } from '../web-dependencies.ts';
import { formatInstant, formatNumber } from './format.ts';

const MAX_TEXT = 200;

/** Fields that usually hold a title, for a resource without columns. */
const USUAL_TITLES = ['name', 'subject', 'title'];

/** Epoch seconds between 2001 and 2286, and ISO 8601. */
const EPOCH = /^\d{10}(?:\.\d+)?$/;
const ISO_DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d/;

/** Finds the title of a record by its resource's name and its id. */
export type NameOf = (resource: string, id: string) => string | undefined;

interface Cell {
  title: string;
  text: string;
  /** ISO 8601, where the value is a date. */
  at: string | null;
}

/** The values at a dotted path, through arrays too. */
function valuesAt(document: unknown, path: string): unknown[] {
  let found: unknown[] = [document];
  for (const name of path.split('.')) {
    found = found.flat().map((value) => {
      const isObject = typeof value === 'object' && value !== null;
      return isObject && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
    });
  }
  return found.flat().filter((value) => value !== undefined && value !== null && value !== '');
}

function momentOf(path: string, value: unknown): string | null {
  const isDate = typeof value === 'string' && ISO_DATE.test(value);
  const isEpoch =
    path.endsWith('_at') &&
    (typeof value === 'number' || typeof value === 'string') &&
    EPOCH.test(`${value}`);
  const date = new Date(isEpoch ? Number(value) * 1_000 : isDate ? value : Number.NaN);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

function plainText(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function textOf(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'Yes' : 'No';
  return plainText(value);
}

/** The text of a column for files, dates as ISO 8601. */
export function plainValue(document: unknown, path: string): string {
  const texts = valuesAt(document, path).map((value) => momentOf(path, value) ?? plainText(value));
  return texts.join(', ');
}

function shorten(text: string): string {
  const characters = Array.from(text.slice(0, MAX_TEXT * 2));
  return characters.length > MAX_TEXT
    ? `${characters.slice(0, MAX_TEXT - 1).join('')}…`
    : characters.join('');
}

export function parseDocument(document: string): unknown {
  try {
    return parseExactly(document);
  } catch {
    // Cut, or nested too deep.
    return undefined;
  }
}

/** The resource's name and the id of a record in the path of a write: `/contacts/crd_1`. */
export function recordOf(object: string): [string, string][] {
  const [, resource, id] = /^\/([^/]+)\/([^/]+)$/.exec(object) ?? [];
  return resource === undefined || id === undefined ? [] : [[resource, id]];
}

/** A record for people: its title, and the other columns of `resources.ts`. */
export function recordView(record: StoredRecord, { columns = [] }: WebResource) {
  const document = record.document === null ? undefined : parseDocument(record.document);
  const cells = columns.map(({ title, path }): Cell => {
    const values = valuesAt(document, path);
    const at = values.length === 1 ? momentOf(path, values[0]) : null;
    return { title, at, text: at === null ? shorten(values.map(textOf).join(', ')) : formatInstant(at) };
  });
  const [first, ...others] = cells;
  const usual = USUAL_TITLES.map((name) => plainValue(document, name)).find((text) => text.trim() !== '');
  const shownId = String(recordId(record.id));
  const updatedAt = new Date(record.updatedAt).toISOString();
  const deletedAt = record.deletedAt === null ? null : new Date(record.deletedAt).toISOString();
  return {
    id: record.id,
    /** As the service wrote it. */
    shownId,
    title: first?.text.trim() || shorten(usual ?? shownId),
    cells: others,
    updatedAt,
    deletedAt,
    document: record.document,
    lengthText: record.isCut ? formatNumber(record.document?.length ?? 0) : null,
  };
}
