import type { Collection } from '../data/collection.ts';
import type { Contact } from '../data/contacts.ts';
import type { Conversation } from '../data/conversations.ts';
import type { Document } from '../data/kinds.ts';
import type { ChangeableResource, ChangedRecords, RecordChanges } from '../types.ts';
import type { Company } from './company.ts';

/** Lists that may be long, so that someone is paging while they change. */
export const CHANGEABLE = ['contacts', 'conversations'] as const satisfies readonly ChangeableResource[];

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
  { create = 0, delete: remove = 0, change = 0, reorder: isReordered = false }: RecordChanges,
  at: number,
  fresh: (document: D) => D,
): ChangedRecords {
  const deleted = spread(table, remove).map(({ id }) => id);
  for (const id of deleted) table.delete(id);
  const changed = spread(table, change).map((document) => {
    const { revision } = document.custom_fields;
    const next = typeof revision === 'number' ? revision + 1 : 1;
    table.replace({
      ...document,
      custom_fields: { ...document.custom_fields, revision: next },
      updated_at: at,
    });
    return document.id;
  });
  const created = Array.from({ length: create }, () => table.replace(fresh(table.add())).id);
  return { created, deleted, changed, reordered: isReordered && table.reorder() };
}

/**
 * Deletes, changes and creates records of a list and puts it into another order, in this sequence: what happens to a list
 * while someone goes through its pages.
 *
 * A deleted record leaves its place empty: a page that is read later is shorter by it, and nothing else moves. A changed
 * one counts up its custom field `revision`, and `updated_at` is now. Created ones are at the end of the list. When the
 * list is reordered, who is in the middle of it may meet records twice or not at all, but page tokens stay valid and the
 * list ends. Which records are concerned is always the same for the same list; of more than there are, all are.
 *
 * @param now ms since 1970 on the service's clock
 */
export function changeRecords(company: Company, changes: RecordChanges, now: number): ChangedRecords {
  const at = now / 1000;
  const { contacts, conversations } = company.tables;
  if (changes.resource === 'contacts') {
    return apply<Contact>(contacts, changes, at, (document) => ({
      ...document,
      created_at: at,
      updated_at: at,
    }));
  }
  return apply<Conversation>(conversations, changes, at, (document) => ({
    ...document,
    last_message: { excerpt: '', is_inbound: true, created_at: at },
    created_at: at,
    updated_at: at,
  }));
}
