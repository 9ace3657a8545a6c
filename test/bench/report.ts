/** A row of a table, by the names of its columns. */
export type Row = Readonly<Record<string, string | number>>;

/** A table for a terminal. Numbers stand to the right. */
export function table(rows: readonly Row[]): string {
  const columns = Object.keys(rows[0] ?? {});
  const cells = [columns, ...rows.map((row) => columns.map((column) => shown(row[column])))];
  const widths = columns.map((_, at) => Math.max(...cells.map((line) => line[at]?.length ?? 0)));
  const isNumber = columns.map((column) => typeof rows[0]?.[column] === 'number');
  const pad = (text: string, at: number) =>
    isNumber[at] ? text.padStart(widths[at] ?? 0) : text.padEnd(widths[at] ?? 0);
  const lines = cells.map((line) => line.map(pad).join('  ').trimEnd());
  return [lines[0], widths.map((width) => '-'.repeat(width)).join('  '), ...lines.slice(1)].join('\n');
}

function shown(value: string | number | undefined): string {
  if (typeof value !== 'number') return value ?? '';
  return value.toLocaleString('en', { maximumFractionDigits: value < 100 ? 2 : 0 });
}

/** The middle value; the lower one of two. @throws RangeError without values */
export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** The least value that this share of the values does not exceed. @throws RangeError without values */
export function percentile(values: readonly number[], share: number): number {
  const value = values.toSorted((one, other) => one - other)[Math.ceil(values.length * share) - 1];
  if (value === undefined) throw new RangeError('There are no values.');
  return value;
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
