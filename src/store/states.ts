/** What an instance may be; `needs_reauthorization` and `disconnected` end with a new install. */
export type InstanceState = 'active' | 'paused' | 'needs_reauthorization' | 'disconnected';

/** What a run may be; a run that was `ended` belongs to an instance that was disconnected. */
export type RunState = 'waiting' | 'running' | 'failed' | 'finished' | 'ended';

/** What a list may be: `idle` between its runs. */
export type ListState = 'idle' | 'waiting' | 'running' | 'failed';

/** What a list is by its newest run. */
export function listState(run: RunState | null | undefined): ListState {
  return run === 'waiting' || run === 'running' || run === 'failed' ? run : 'idle';
}

/** Trouble of the service that passes by itself: the next try comes within two minutes. */
export const SERVICE_OUTAGES = [
  'unreachable',
  'timeout',
  'bad_answer',
  'server_error',
] as const satisfies ErrorKind[];

/** What went wrong, for the failure policy and for the words that people read. */
export type ErrorKind =
  | 'unreachable'
  | 'timeout'
  | 'bad_answer'
  | 'refused'
  | 'rate_limited'
  | 'server_error'
  | 'reauthorize'
  | 'credentials'
  | 'key_missing'
  | 'handler'
  | 'store'
  | 'redis'
  | 'internal';
