/**
 * How long a test waits for what is to come, in milliseconds: an end for what hangs, and no promise of ours. It is wide
 * enough for a machine whose processors others use; who waits for a promise names its time.
 */
export const PATIENCE_MS = 120_000;
