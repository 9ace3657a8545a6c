import type { Collection, Document, Owner } from './collection.ts';
import { AT_START_S, few } from './few.ts';

/** A link: an object of another application that conversations are about. */
export type Link = Document & {
  readonly name: string;
  readonly type: string;
  readonly external_url: string | null;
  readonly custom_fields: Readonly<Record<string, unknown>>;
  readonly created_at: number;
  readonly updated_at: number;
};

const AT_START = [
  { name: 'Order 10482', path: 'orders/10482' },
  { name: 'Return 338', path: 'returns/338' },
] as const;

/** The links of a company: two at start. */
export function links(owner: Owner): Collection<Link> {
  return few<Link>(owner, {
    prefix: 'lnk',
    start: AT_START.map(({ name, path }) => (id) => ({
      id,
      name,
      type: 'web',
      external_url: `https://shop.example/${path}`,
      custom_fields: {},
      created_at: AT_START_S,
      updated_at: AT_START_S,
    })),
    present: (link, baseUrl) => ({ _links: { self: `${baseUrl}/links/${link.id}` }, ...link }),
  });
}
