import { EventEmitter } from 'node:events';
import type { Worker } from 'bullmq';
import { expect, test } from 'vitest';
import { pauseOnErrors } from '../../jobs/error-pauses.ts';

/** A worker of BullMQ, as far as errors go. */
function startWorker() {
  const worker = Object.assign(new EventEmitter(), { pauses: 0, pause: async () => {}, resume: () => {} });
  worker.pause = async () => {
    worker.pauses++;
  };
  const end = pauseOnErrors(worker as unknown as Worker);
  const meet = (error: Error) => {
    worker.emit('error', error);
    return worker.pauses;
  };
  return { meet, end };
}

test('a worker takes no job for a moment after an error that BullMQ would meet again at once', () => {
  const { meet, end } = startWorker();
  expect(meet(new Error('Redis version needs to be greater or equal than 5.0.0'))).toBe(1);
  end();
});

test.each([
  ['that the connection waits on by itself', Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })],
  ['of a single job, whose lock is lost', new Error('could not renew lock for job ins_1.contacts')],
])('it goes on after one %s', (_what, error) => {
  const { meet, end } = startWorker();
  expect(meet(error)).toBe(0);
  end();
});
