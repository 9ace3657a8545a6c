/** A table for a terminal, numbers to the right. */
export function table(rows: readonly Readonly<Record<string, string | number>>[]): string {
  const columns = Object.keys(rows[0] ?? {});
  const cells = [columns, ...rows.map((row) => columns.map((column) => shown(row[column])))];
  const widths = columns.map((_, at) => Math.max(...cells.map((line) => line[at]?.length ?? 0)));
  const isNumber = columns.map((column) => typeof rows[0]?.[column] === 'number');
  const line = (texts: readonly string[]) =>
    texts
      .map((text, at) => (isNumber[at] ? text.padStart(widths[at] ?? 0) : text.padEnd(widths[at] ?? 0)))
      .join('  ')
      .trimEnd();
  const [head = [], ...body] = cells;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...body.map(line)].join('\n');
}

function shown(value: string | number | undefined): string {
  if (typeof value !== 'number') return value ?? '';
  return value.toLocaleString('en', { maximumFractionDigits: value < 100 ? 1 : 0 });
}
