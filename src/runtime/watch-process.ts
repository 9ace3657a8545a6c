import { workerData } from 'node:worker_threads';

// A thread of the delivery process. A handler that computes without an end stops the process, but not this thread.

const LOOK_MS = 250;

export interface WatchedProcess {
  /** The worker's process id. */
  parent: number;
  mostBytes: number;
  /** The second at which the function of a handler began in its transaction, by `performance.now()`; 0 while none runs. */
  transaction: Int32Array;
  mostInTransactionMs: number;
}

const { parent, mostBytes, transaction, mostInTransactionMs } = workerData as WatchedProcess;
let standsSince: number | undefined;
let last = 0;

setInterval(() => {
  if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL');
  // As Node itself does when the heap is full. Buffers are not on the heap.
  if (process.memoryUsage.rss() > mostBytes) process.kill(process.pid, 'SIGABRT');
  const began = Atomics.load(transaction, 0);
  if (began === 0 || began !== last) standsSince = undefined;
  else standsSince ??= performance.now();
  last = began;
  // The transaction keeps other processes from writing.
  const standsMs = standsSince === undefined ? 0 : performance.now() - standsSince;
  if (standsMs > mostInTransactionMs) process.kill(process.pid, 'SIGXCPU');
}, LOOK_MS);
