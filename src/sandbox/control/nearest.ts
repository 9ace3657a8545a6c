/** How many characters differ at least: inserted, left out or replaced. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [i, char] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const replaced = (row[j] ?? 0) + (char === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

/** The name that is most like a given one; undefined without names. */
export function nearestOf(given: string, names: readonly string[]): string | undefined {
  const near = names.map((name) => ({ name, by: distance(given.slice(0, 200), name) }));
  return near.toSorted((a, b) => a.by - b.by)[0]?.name;
}
