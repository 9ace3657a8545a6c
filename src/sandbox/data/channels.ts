import type { Collection, Document, Owner } from './collection.ts';
import { few } from './few.ts';

/** A channel: where messages of an inbox come from and go to. */
export type Channel = Document & { readonly name: string };

/** The channels of a company. */
export function channels(owner: Owner): Collection<Channel> {
  return few<Channel>(owner, {
    prefix: 'cha',
    start: ['Shop chat', 'Parcel tracker'].map((name) => (id) => ({ id, name })),
    present: (document, baseUrl) => ({ _links: { self: `${baseUrl}/channels/${document.id}` }, ...document }),
  });
}
