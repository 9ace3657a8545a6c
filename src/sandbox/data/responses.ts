import type { Collection, Document, Owner } from './collection.ts';
import { few } from './few.ts';

/** A canned answer. */
export type CannedAnswer = Document & { readonly name: string };

/** The canned answers of a company. */
export function responses(owner: Owner): Collection<CannedAnswer> {
  return few<CannedAnswer>(owner, {
    prefix: 'rsp',
    start: ['Opening hours', 'Delivery takes longer', 'Rücksendung'].map((name) => (id) => ({ id, name })),
    present: (document, baseUrl) => ({
      _links: { self: `${baseUrl}/responses/${document.id}` },
      ...document,
    }),
  });
}
