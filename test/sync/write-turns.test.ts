import { expect, test } from 'vitest';
import { WriteTurns } from '../../src/sync/write-turns.ts';

/** Resolves in the event loop's next turn. */
const turnOfLoop = () => new Promise<void>((resolve) => setImmediate(resolve));

test('one page a turn of the event loop: those of small runs first, then as they came', async () => {
  const turns = new WriteTurns();
  const order: string[] = [];
  const wait = (name: string, pages: number) => turns.within(pages, async () => order.push(name));
  const all = [wait('giant', 900), wait('third', 3), wait('other third', 3), wait('new', 0)];
  expect(turns.waiting).toBe(4);
  const seen: string[][] = [];
  for (let turn = 0; turn < 4; turn++) {
    await turnOfLoop();
    seen.push([...order]);
  }
  expect(seen.map(({ length }) => length)).toEqual([1, 2, 3, 4]);
  expect(order).toEqual(['new', 'third', 'other third', 'giant']);
  expect(turns.waiting).toBe(0);
  await Promise.all(all);
});

test('what was begun before goes first, also when nobody waits', async () => {
  const turns = new WriteTurns();
  const order: string[] = [];
  const page = turns.within(0, async () => order.push('page'));
  process.nextTick(() => order.push('begun before'));
  await page;
  expect(order).toEqual(['begun before', 'page']);
  await turns.within(0, async () => undefined);
  expect(turns.waiting).toBe(0);
});

test('a turn lasts until its work is done, also when that fails, or until it has ended it', async () => {
  const turns = new WriteTurns();
  const order: string[] = [];
  const locked = Promise.withResolvers<void>();
  const first = turns.within(0, async () => {
    order.push('locked out');
    await locked.promise;
    throw new Error('it could not be written');
  });
  const second = turns.within(0, async (end) => {
    order.push('own logic');
    end();
    end();
    await new Promise(() => undefined);
  });
  const third = turns.within(0, async () => order.push('behind it'));
  const fourth = turns.within(0, async () => order.push('last'));
  for (let turn = 0; turn < 4; turn++) await turnOfLoop();
  expect(order).toEqual(['locked out']);
  locked.resolve();
  await expect(first).rejects.toThrow('it could not be written');
  await Promise.all([third, fourth]);
  expect(order).toEqual(['locked out', 'own logic', 'behind it', 'last']);
  await expect(Promise.race([second, turnOfLoop()])).resolves.toBeUndefined();
});
