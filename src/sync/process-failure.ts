/** Why a process ends that has met an error which nobody caught: whatever is under way may have thrown it. */
export class ProcessFailure extends Error {
  constructor() {
    super('The process ends, as nobody has caught an error.');
    this.name = 'ProcessFailure';
  }
}

/** Whether the process ends in order, so that what it breaks off says nothing about the own logic's batch. */
export function isShutdown({ aborted, reason }: AbortSignal): boolean {
  return aborted && !(reason instanceof ProcessFailure);
}
