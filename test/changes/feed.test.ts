import { describe, expect, test } from 'vitest';
import { feedLines } from '../../src/changes/feed.ts';
import { collect, DATABASES, documentsOf, openTestStore } from '../store/test-store.ts';

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const linesOf = (list: number, after = 0, limit = 1_000) =>
    collect(feedLines(store.changes, list, { after, limit }));

  test('each line is a change, with the document to the byte', async () => {
    const documents = ['{"id":"a","n":1.50,"x":"\\u0041 ł"}', '{"id":12345678901234567890}', '{"id":"#1"}'];
    const first = await store.copy(documents);
    const second = await store.claimRun(first);
    await store.write(second, documents.slice(0, 2));
    await store.markUnseen(second);
    const [a, b, c] = (await store.feed(first.list)).map(({ seq }) => seq);
    expect(await linesOf(first.list)).toEqual([
      `{"seq":${a},"change":"created","id":"a","document":${documents[0]}}`,
      `{"seq":${b},"change":"created","id":12345678901234567890,"document":${documents[1]}}`,
      `{"seq":${c},"change":"deleted","id":"#1","document":null}`,
    ]);
    expect(await linesOf(first.list, b)).toHaveLength(1);
    expect(await linesOf(first.list, c)).toEqual([]);
  });

  test('a reader gets as many lines as it asks for, and goes on behind the last one', async () => {
    const claim = await store.copy(documentsOf(250));
    const ids: string[] = [];
    for (let after = 0; ; ) {
      const lines = (await linesOf(claim.list, after, 120)).map((line) => JSON.parse(line));
      if (lines.length === 0) break;
      expect(lines.length).toBe(Math.min(120, 250 - ids.length));
      ids.push(...lines.map(({ id }) => id));
      after = lines.at(-1).seq;
    }
    expect(ids).toEqual(documentsOf(250).map((text) => JSON.parse(text).id));
  });
});
