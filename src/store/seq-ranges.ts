/** Consecutive `seq`s of records, both ends included. */
export interface SeqRange {
  first: number;
  last: number;
}

/** Folds `seq`s, in any order, into as few ranges as hold them. */
export function toRanges(seqs: readonly number[]): SeqRange[] {
  const ranges: SeqRange[] = [];
  for (const seq of seqs.toSorted((one, other) => one - other)) {
    const open = ranges.at(-1);
    if (open !== undefined && seq <= open.last + 1) open.last = seq;
    else ranges.push({ first: seq, last: seq });
  }
  return ranges;
}
