import type { Job } from 'bullmq';
import { rotateTokens } from '../src/auth/rotation.ts';
import type { AnswerMemory } from '../src/client/answer-memory.ts';
import type { Logger } from '../src/runtime/logging.ts';
import type { BrowserStore } from '../src/store/browsers.ts';
import { watchLoopLoad } from '../src/sync/loop-load.ts';
import { PageGate } from '../src/sync/page-gate.ts';
import { ProcessFailure } from '../src/sync/process-failure.ts';
import { type ScheduleParts, startDueRuns } from '../src/sync/schedule.ts';
import type { SyncParts } from '../src/sync/slice-parts.ts';
import { SlotWaits } from '../src/sync/slot-waits.ts';
import { WriteTurns } from '../src/sync/write-turns.ts';
import { closeWorkers } from './close-workers.ts';
import { pauseOnErrors } from './error-pauses.ts';
import { ForeignJobs } from './foreign-jobs.ts';
import { type IndexParts, keepIndex } from './keep-index.ts';
import { LockKeepingWorker } from './lock-keeping-worker.ts';
import { connectionTrouble, QUEUE, type Queues, type SyncJobData } from './queues.ts';
import { keepSchedules, UPKEEP } from './schedules.ts';
import { syncRun } from './sync-run.ts';
import { type TakeOverParts, takeOverFromDead } from './take-over.ts';
import { type Connect, WorkerConnections } from './worker-connections.ts';

/**
 * Runs that one process holds at the same time. Most of them wait: for the network, their turn at the gate, own logic.
 * That costs a few kilobytes each; a run that has no place would pay with a turn at the queue for every few pages.
 */
const RUNS_AT_ONCE = 5_000;

// After kill -9 another worker on this machine takes the job over at once, one elsewhere has it within lock and check
// together; what the dead one still sends or writes is kept out by the run's fence. A job may be lost so as often as it
// likes.
const RECOVERY = { lockDuration: 4_000, stalledInterval: 2_000, maxStalledCount: 1_000 } as const;

/** What the workers of a process work with. */
export interface WorkerParts {
  connect: Connect;
  queues: Queues;
  sync: SyncParts;
  schedule: ScheduleParts;
  browsers: BrowserStore;
  index: Omit<IndexParts, 'logger'>;
  takeOver: TakeOverParts;
  /** Where all that the process has read of the service is counted. */
  memory: AnswerMemory;
  logger: Logger;
  /** Told how long the job of a new run waited for a place in a worker, in milliseconds. */
  onFirstTurn?: (turn: { waitMs: number }) => void;
}

/** The workers of one process, running. */
export interface Workers {
  /** What is looked at for readiness, by name: each rejects with what is wrong. */
  checks: { jobs(): Promise<void> };
  /** Of the connections by which they get their jobs, how many have not been usable for some seconds. */
  unusableConnections(): number;
  /** For how long they could not look after the schedules, in milliseconds; 0 while they can. */
  schedulesLateMs(): number;
  /**
   * Ends them: requests under way are broken off, and every run stands where another worker takes it up.
   *
   * @param end.hasCrashed whether an error that nobody has caught ends the process: own logic that is at work may be what
   *   has thrown it, so its try counts
   */
  close(end?: { hasCrashed: boolean }): Promise<void>;
}

/** Starts the workers of this process and keeps the schedules. */
export function startWorkers(parts: WorkerParts): Workers {
  const { queues, logger } = parts;
  // Before there are jobs that somebody might have to take over.
  const endTakeOver = takeOverFromDead(parts.takeOver, queues.sync, logger);
  const connections = new WorkerConnections(parts.connect, logger);
  const stopping = new AbortController();
  const turns = new WriteTurns();
  const gate = new PageGate(turns, parts.memory);
  const endWatch = watchLoopLoad((utilization) => gate.adjust(utilization));
  let running = 0;
  const hasRoom = () => running < RUNS_AT_ONCE;
  const foreign = new ForeignJobs(logger);
  const context = { logger, signal: stopping.signal, gate, turns, waits: new SlotWaits(), hasRoom, foreign };

  const sync = new LockKeepingWorker<SyncJobData>(
    QUEUE.sync,
    async (job, token) => {
      running++;
      await syncRun(parts.sync, job, token, context).finally(() => running--);
    },
    {
      connection: connections.of(QUEUE.sync),
      concurrency: RUNS_AT_ONCE,
      name: parts.takeOver.processes.id,
      ...RECOVERY,
    },
  );
  let caring = 0;
  const takeCare = async (job: Job, token: string | undefined) => {
    if (job.name === UPKEEP.startRuns) return queues.enqueue(await startDueRuns(parts.schedule));
    if (job.name !== UPKEEP.rotateTokens) return foreign.leaveAlone(job, token);
    await parts.browsers.removeExpired(Date.now());
    await rotateTokens(parts.sync.tokens, logger.child({ job: job.id }), stopping.signal);
  };
  const upkeep = new LockKeepingWorker(
    QUEUE.upkeep,
    async (job, token) => {
      caring++;
      await takeCare(job, token).finally(() => caring--);
    },
    { connection: connections.of(QUEUE.upkeep), concurrency: 2, ...RECOVERY },
  );
  for (const worker of [sync, upkeep]) {
    worker.on('failed', (job, error) => logger.error({ job: job?.id, err: error }, 'a job failed'));
    worker.on('error', connectionTrouble(logger, worker.name));
  }
  const endPauses = [pauseOnErrors(sync), pauseOnErrors(upkeep)];
  sync.on('active', (job) => {
    // Later turns do not say since when they could have been taken: BullMQ keeps the moment of the job's creation alone.
    if (job.attemptsStarted === 1) {
      const from = job.timestamp + (job.opts.delay ?? 0);
      parts.onFirstTurn?.({ waitMs: Math.max(0, (job.processedOn ?? Date.now()) - from) });
    }
  });
  const schedules = keepSchedules(queues, logger, parts.schedule.intervalMs);
  const endIndex = keepIndex({ ...parts.index, logger });
  return {
    checks: {
      async jobs() {
        const troubles = connections.troubles();
        if (troubles.length > 0) throw new Error(troubles.join(' '));
      },
    },
    unusableConnections: () => connections.troubles().length,
    schedulesLateMs: schedules.lateMs,
    async close({ hasCrashed } = { hasCrashed: false }) {
      schedules.end();
      endWatch();
      stopping.abort(hasCrashed ? new ProcessFailure() : undefined);
      for (const end of endPauses) end();
      await Promise.all([
        closeWorkers([sync, upkeep], connections, () => running + caring === 0, logger),
        endIndex(),
      ]);
      await endTakeOver();
      connections.close();
    },
  };
}
