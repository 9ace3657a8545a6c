import type { Collection } from '../data/collection.ts';
import type { Document } from '../data/kinds.ts';
import type { ChangedRecords, RecordChanges } from '../types.ts';
import type { Company } from './companies.ts';

type Changeable = Document & { readonly custom_fields: Readonly<Record<string, unknown>> };

/** As many records that are there, or all, evenly spread over the list: the same ones whenever the list is the same. */
function spread<D extends Document>(table: Collection<D>, count: number): D[] {
  const { places } = table;
  const chosen = new Map<string, D>();
  const wanted = Math.min(count, table.count);
  for (let nth = 0; nth < wanted; nth++) {
    let place = Math.floor(((nth + 0.5) * places) / wanted);
    let document = table.atPlace(place);
    while (document === undefined || chosen.has(document.id)) {
      place = (place + 1) % places;
      document = table.atPlace(place);
    }
    chosen.set(document.id, document);
  }
  return [...chosen.values()];
}

function apply<D extends Changeable>(
  table: Collection<D>,
  { create = 0, delete: remove = 0, change = 0, reorder = false }: RecordChanges,
  updated_at: number,
  fresh: object,
): ChangedRecords {
  const deleted = spread(table, remove).map(({ id }) => id);
  for (const id of deleted) table.delete(id);
  const changed = spread(table, change).map((document) => {
    const { revision } = document.custom_fields;
    const next = typeof revision === 'number' ? revision + 1 : 1;
    const custom_fields = { ...document.custom_fields, revision: next };
    return table.replace({ ...document, custom_fields, updated_at }).id;
  });
  const created = Array.from({ length: create }, () => table.replace({ ...table.add(), ...fresh }).id);
  return { created, deleted, changed, reordered: reorder && table.reorder() };
}

/**
 * Deletes, changes, creates and reorders records of a list, in this sequence, as if while a client pages through it.
 *
 * A deleted record leaves its place empty: a page that is read later is shorter by it, and nothing else moves. A changed
 * one counts up its custom field `revision`, and `updated_at` is now. Created ones are at the end of the list. After a
 * new order a client may meet records twice or not at all, but page tokens stay valid and the list ends. The same list
 * always has the same records concerned; of more than there are, all are.
 *
 * @param now ms since 1970 on the service's clock
 */
export function changeRecords(company: Company, changes: RecordChanges, now: number): ChangedRecords {
  const at = now / 1000;
  const dates = { created_at: at, updated_at: at };
  const { contacts, conversations } = company.tables;
  if (changes.resource === 'contacts') return apply(contacts, changes, at, dates);
  const last_message = { excerpt: '', is_inbound: true, created_at: at };
  return apply(conversations, changes, at, { ...dates, last_message });
}
