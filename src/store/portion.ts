/**
 * Documents that are read together end with the one that brings them to this length (UTF-16 units): a portion that is
 * bounded by the number of its records alone is as large as the service likes.
 */
export const PORTION_LENGTH = 4 * 1_024 * 1_024;

/**
 * The first of these rows, at least one if there are any; the others are not read.
 *
 * @param rows a statement's, as it finds them
 * @param taken how long the documents are that make one portion with them (UTF-16 units)
 */
export function takePortion<Row extends { document: string }>(
  rows: Iterable<Row>,
  taken = 0,
): { rows: Row[]; length: number } {
  const portion: Row[] = [];
  let length = taken;
  for (const row of rows) {
    portion.push(row);
    length += row.document.length;
    if (length >= PORTION_LENGTH) break;
  }
  return { rows: portion, length };
}
