import type { ChangeStore } from '../store/changes.ts';
import { idJson, oneLine } from '../store/page-items.ts';

/**
 * A list's change feed as lines of JSON, for a program outside.
 *
 * @param after the number behind which it begins; 0 gives the whole copy
 * @param limit lines at most
 */
export async function* feedLines(
  changes: Pick<ChangeStore, 'read'>,
  list: number,
  { after, limit }: { after: number; limit: number },
): AsyncGenerator<string> {
  for (let cursor = after, left = limit; left > 0; ) {
    const entries = await changes.read(list, cursor, left);
    const last = entries.at(-1);
    if (last === undefined) return;
    for (const { seq, change, id, document } of entries) {
      const text = document === null ? null : oneLine(document);
      yield `{"seq":${seq},"change":"${change}","id":${idJson(id)},"document":${text}}`;
    }
    cursor = last.seq;
    left -= entries.length;
  }
}
