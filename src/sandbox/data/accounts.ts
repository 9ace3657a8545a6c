import type { Collection, Document, Owner } from './collection.ts';
import { few } from './few.ts';

/** An account: a firm that contacts belong to. */
export type Account = Document & { readonly name: string };

/** The accounts of a company. */
export function accounts(owner: Owner): Collection<Account> {
  return few<Account>(owner, {
    prefix: 'acc',
    start: ['Larkspur Interiors', 'Kuro Cycles', 'Saltmarsh Bakery'].map((name) => (id) => ({ id, name })),
    present: (document, baseUrl) => ({ _links: { self: `${baseUrl}/accounts/${document.id}` }, ...document }),
  });
}
