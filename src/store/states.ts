/** What an instance may be; `needs_reauthorization` and `disconnected` end with a new install. */
export type InstanceState = 'active' | 'paused' | 'needs_reauthorization' | 'disconnected';

/** What the run of a resource may be. */
export type RunState = 'idle' | 'waiting' | 'running' | 'failed';
