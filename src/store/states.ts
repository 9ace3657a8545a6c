/** States of an instance. A new install ends `needs_reauthorization` and `disconnected`. */
export type InstanceState = 'active' | 'paused' | 'needs_reauthorization' | 'disconnected';

/** States of a run. A disconnect leaves it `ended`. */
export type RunState = 'waiting' | 'running' | 'failed' | 'finished' | 'ended';

/** States of a write in the outbox. */
export type WriteState = 'pending' | 'sending' | 'done' | 'refused' | 'unknown' | 'discarded';

/** States of a list: it is `idle` between its runs. */
export type ListState = 'idle' | 'waiting' | 'running' | 'failed';

/** The state of a list, by its newest run. */
export function listState(run: RunState | null | undefined): ListState {
  return run === 'waiting' || run === 'running' || run === 'failed' ? run : 'idle';
}

/** Errors of the service that pass by themselves: the next try comes within two minutes. */
export const SERVICE_OUTAGES = [
  'unreachable',
  'timeout',
  'bad_answer',
  'server_error',
] as const satisfies ErrorKind[];

/** Kinds of errors, for the failure policy and for the messages that people read. */
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
  | 'handler_ended'
  | 'store'
  | 'redis'
  | 'internal';
