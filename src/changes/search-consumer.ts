import { type FeedEntry, SEARCH_CONSUMER } from '../store/changes.ts';
import type { Database } from '../store/database.ts';
import { documentValues } from '../store/document-values.ts';
import { listMark, MOST_TEXT, markedWords } from '../store/search-words.ts';
import type { ChangeConsumer } from './delivery.ts';

/** What a worker knows of the consumer. */
export const SEARCH = { name: SEARCH_CONSUMER, whileActive: false } as const;

/** The consumer that writes the search index. Words and cursor change in one transaction. */
export function searchConsumer({ dialect }: Database): ChangeConsumer {
  return {
    ...SEARCH,
    async take(entries, { list }, { logger }) {
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
