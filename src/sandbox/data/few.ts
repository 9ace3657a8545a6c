import { Collection, type Document, type Owner, type View } from './collection.ts';

/** When what every company has at start was made, in seconds since 1970. */
export const AT_START_S = Date.UTC(2021, 0, 4) / 1000;

/** What a collection of a few records is made of. */
export interface Few<D extends Document> {
  prefix: string;
  /** Records at start, by index. */
  start: readonly ((id: string, index: number) => D)[];
  present(document: D, baseUrl: string, view: View): object;
}

/** A collection of which the records at start are few, and named one by one. */
export function few<D extends Document>(owner: Owner, { prefix, start, present }: Few<D>): Collection<D> {
  const build = (index: number, id: string): D => {
    const make = start[index];
    if (make === undefined) throw new RangeError(`no record ${index} of ${prefix}`);
    return make(id, index);
  };
  return new Collection({ prefix, build, present }, owner, start.length);
}
