import { parentPort, workerData } from 'node:worker_threads';
import { KeptLog } from '../src/store/kept-log.ts';
import { joinDatabase } from '../src/store/open-database.ts';
import { RemovalStore } from '../src/store/removals.ts';
import { SearchIndex } from '../src/store/search-index.ts';
import { CELL, type IndexThreadData, type IndexThreadMessage } from './index-thread-data.ts';

/** How many records at a time: their words keep a page from being written for a few milliseconds at the most. */
const PORTION = 50;

/** How soon an empty queue is looked at again, in milliseconds. */
const LOOK_AGAIN_MS = 1_000;

/** How often the log is copied while there is something to do, in milliseconds: some thousand of its pages at the most. */
const COPY_EVERY_MS = 250;

/** From so many percent of the event loop's time on, so many times as long as a portion took pass before the next. */
const PAUSES = [
  { from: 80, times: 19 },
  { from: 10, times: 3 },
] as const;

const { databaseUrl, longLogPages, cells }: IndexThreadData = workerData;

/** Nothing else goes on in this thread: so it may sleep; whoever ends it wakes it. */
const pause = (ms: number) => Atomics.wait(cells, CELL.isEnding, 0, ms);

const isEnding = () => Atomics.load(cells, CELL.isEnding) !== 0;

const tell = (message: IndexThreadMessage) => parentPort?.postMessage(message);

const db = await joinDatabase(databaseUrl);

const keptLog = new KeptLog(longLogPages);
let copiedAt = 0;

/** The pages that others write fill the log: who commits beyond a size copies it, and is to be spared that. */
function copyLogAtTimes(): void {
  if (performance.now() - copiedAt < COPY_EVERY_MS) return;
  const logMb = keptLog.note(db.copyLog());
  if (logMb !== undefined) tell({ logMb });
  copiedAt = performance.now();
}

try {
  const index = new SearchIndex(db, {
    behind: Atomics.load(cells, CELL.entry),
    onEntry: (place) => Atomics.store(cells, CELL.entry, place),
  });
  const removals = new RemovalStore(db);
  while (!isEnding()) {
    const startedAt = performance.now();
    const portion = await index.indexPortion(PORTION);
    for (const unreadable of portion?.unreadable ?? []) tell({ unreadable });
    // In turns, as the queue may never be empty, and the instance of a removal waits.
    const hasRemoved = await removals.resume();
    const hasMerged = portion === undefined && (await index.mergeParts());
    const isWorking = portion !== undefined || hasRemoved || hasMerged;
    const percent = Atomics.load(cells, CELL.busyPercent);
    const times = PAUSES.find(({ from }) => percent >= from)?.times ?? 0;
    const [restMs, stepMs] = isWorking
      ? [times * (performance.now() - startedAt), COPY_EVERY_MS]
      : [LOOK_AGAIN_MS, LOOK_AGAIN_MS];
    copyLogAtTimes();
    for (let leftMs = restMs; leftMs > 0 && !isEnding(); leftMs -= stepMs) {
      pause(Math.min(leftMs, stepMs));
      copyLogAtTimes();
    }
  }
} finally {
  await db.destroy();
}
