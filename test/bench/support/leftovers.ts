const ends = new Set<() => unknown>();

async function endAll(): Promise<void> {
  // The youngest first: a Redis needs its directory to end.
  for (const end of [...ends].reverse()) await Promise.allSettled([end()]);
  process.exit(1);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => void endAll());

/**
 * Sees to it that what runs beside a bench does not outlive it when it is interrupted.
 *
 * @param end takes it away, at once
 * @returns to be called when it has ended in the regular way
 */
export function endIfInterrupted(end: () => unknown): () => void {
  ends.add(end);
  return () => ends.delete(end);
}
