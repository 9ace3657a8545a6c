/**
 * The value below which this share of the values lies (the nearest rank; 0.5 is the median).
 *
 * @throws RangeError without values
 */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  if (value === undefined) throw new RangeError('there are no values');
  return value;
}

/** The middle value; of an even number the lower one of both. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}
