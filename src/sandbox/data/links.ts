import type { Collection, Document, Owner } from './collection.ts';
import { few } from './few.ts';

/** A link: an object of another application that conversations are about. */
export type Link = Document & { readonly name: string };

/** The links of a company: none at start. */
export function links(owner: Owner): Collection<Link> {
  return few<Link>(owner, {
    prefix: 'lnk',
    start: [],
    present: (document, baseUrl) => ({ _links: { self: `${baseUrl}/links/${document.id}` }, ...document }),
  });
}
