import type { Collection } from '../data/collection.ts';
import type { Document } from '../data/record.ts';
import { Problem } from '../http/answer.ts';
import type { ChangedRecords, ChangedValues, RecordChanges } from '../types.ts';
import type { Company } from './companies.ts';

type Changeable = Document & { readonly custom_fields: Readonly<Record<string, unknown>> };

/** Picks so many records, or all, evenly spread over the list. The same list gives the same records. */
function spread<D extends Document>(table: Collection<D>, count: number): D[] {
  const { places } = table;
  const chosen = new Map<string, D>();
  const wanted = Math.min(count, table.count);
  for (let nth = 0; nth < wanted; nth++) {
    let place = Math.floor(((nth + 0.5) * places) / wanted);
    let document = table.atStart(place);
    while (document === undefined || chosen.has(document.id)) {
      place = (place + 1) % places;
      document = table.atStart(place);
    }
    chosen.set(document.id, document);
  }
  return [...chosen.values()];
}

const idOf = (named: string | ChangedValues) => (typeof named === 'string' ? named : named.id);

/** So many records, or those with these ids, each once. */
function pick<D extends Document>(
  table: Collection<D>,
  wanted: number | readonly (string | ChangedValues)[],
): D[] {
  if (typeof wanted === 'number') return spread(table, wanted);
  return [...new Set(wanted.map(idOf))]
    .map((id) => table.find(id))
    .filter((document) => document !== undefined);
}

/** The first id that changes name and a company does not have. */
export function unknownId(
  { tables }: Company,
  { resource, delete: remove, change }: RecordChanges,
): string | undefined {
  const named = [remove, change].flatMap((wanted) => (typeof wanted === 'object' ? wanted.map(idOf) : []));
  return named.find((id) => tables[resource].find(id) === undefined);
}

function apply<D extends Changeable>(
  table: Collection<D>,
  { create = 0, delete: remove = 0, change = 0, reorder = false }: RecordChanges,
  updated_at: number,
  fresh: object,
): ChangedRecords {
  const deleted = pick(table, remove).map(({ id }) => id);
  const twice = typeof change === 'number' ? undefined : change.map(idOf).find((id) => deleted.includes(id));
  if (twice !== undefined) throw new Problem(400, `${twice} cannot be deleted and changed.`);
  for (const id of deleted) table.delete(id);
  const values = new Map(
    (typeof change === 'number' ? [] : change).flatMap((one) =>
      typeof one === 'string' ? [] : [[one.id, one]],
    ),
  );
  const changed = pick(table, change).map((document) => {
    const { _links, custom_fields: own, ...members }: Partial<ChangedValues> = values.get(document.id) ?? {};
    const { revision } = document.custom_fields;
    const next = typeof revision === 'number' ? revision + 1 : 1;
    const custom_fields = { ...document.custom_fields, ...(own as object), revision: next };
    return table.replace({ ...document, ...members, custom_fields, updated_at }).id;
  });
  const created = Array.from({ length: create }, () => table.replace({ ...table.add(), ...fresh }).id);
  return { created, deleted, changed, reordered: reorder && table.reorder() };
}

/**
 * Deletes, changes, creates and reorders records of a list, in this order, as if while a client pages through it. A
 * deleted record leaves its place empty, so a later page is shorter. A changed record counts up its custom field
 * `revision`. In a list by activity, changed and then created records come first, the last one before the others. In a
 * list by creation, created records come at the end. After a reorder a client may meet records twice or not at all; page
 * tokens stay valid.
 *
 * Throws a {@link Problem} (404) that names the first unknown id, and then changes nothing.
 *
 * @param now ms since 1970 on the service's clock
 */
export function changeRecords(company: Company, changes: RecordChanges, now: number): ChangedRecords {
  const unknown = unknownId(company, changes);
  if (unknown !== undefined) throw new Problem(404, `There is no ${unknown} in the ${changes.resource}.`);
  const at = now / 1000;
  const dates = { created_at: at, updated_at: at };
  const { contacts, conversations } = company.tables;
  if (changes.resource === 'contacts') return apply(contacts, changes, at, dates);
  const last_message = { excerpt: '', is_inbound: true, created_at: at };
  return apply(conversations, changes, at, { ...dates, last_message });
}
