import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FeedEntry } from '../store/changes.ts';
import type { Database } from '../store/database.ts';
import { documentValues } from '../store/document-values.ts';
import { SEARCH_CONSUMER } from '../store/records.ts';
import { listMark, MOST_TEXT, markedWords } from '../store/search-words.ts';
import type { ChangeConsumer } from './delivery.ts';

/** Each batch starts with a measurement of the event loop, in milliseconds. */
const MEASURE_MS = 10;

/** Above this utilization pages need the CPU, and the batch waits, in milliseconds. */
const BUSY_FROM = 0.8;
const BUSY_PAUSE_MS = 1_000;

/** The consumer that writes the search index. Words and cursor change in one transaction. */
export function searchConsumer({ dialect }: Database): ChangeConsumer {
  return {
    name: SEARCH_CONSUMER,
    whileActive: false,
    async take(entries, { list }, { logger, signal }) {
      const before = performance.eventLoopUtilization();
      await sleep(MEASURE_MS);
      const { utilization } = performance.eventLoopUtilization(before);
      if (utilization > BUSY_FROM) await sleep(BUSY_PAUSE_MS, undefined, { signal });
      const mark = listMark(list);
      const wordsOf = ({ id }: FeedEntry, document: string): string[] => {
        try {
          return markedWords(documentValues(document, MOST_TEXT), mark);
        } catch (error) {
          logger.warn({ err: error, record: id }, 'a record cannot be read, and no search finds it');
          return [];
        }
      };
      const gone = entries.filter(({ document }) => document === null).map(({ record }) => record);
      const indexed = entries.flatMap((entry) =>
        entry.document === null ? [] : [{ record: entry.record, words: wordsOf(entry, entry.document) }],
      );
      return async (transaction) => {
        if (gone.length > 0) await dialect.search.remove(transaction, gone);
        if (indexed.length > 0) await dialect.search.write(transaction, indexed);
      };
    },
  };
}
