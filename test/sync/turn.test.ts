import { expect, test } from 'vitest';
import { beginTurn } from '../../src/sync/turn.ts';

function turn({ hasRoom }: { hasRoom: boolean }) {
  let now = 1_000_000;
  const isOver = beginTurn(
    () => hasRoom,
    () => now,
  );
  return (afterMs: number, asked: number) => {
    now = 1_000_000 + afterMs;
    return isOver(asked);
  };
}

test.each([
  { afterMs: 0, asked: 24, isOver: false },
  { afterMs: 0, asked: 25, isOver: true },
  { afterMs: 4_999, asked: 1, isOver: false },
  { afterMs: 5_000, asked: 1, isOver: true },
])('when others wait for the place: $asked pages in $afterMs ms', ({ afterMs, asked, isOver }) => {
  expect(turn({ hasRoom: false })(afterMs, asked)).toBe(isOver);
});

test.each([
  { afterMs: 59_999, asked: 1_000, isOver: false },
  { afterMs: 60_000, asked: 1, isOver: true },
])(
  'when nobody does, it is over for the sake of other workers: $asked pages in $afterMs ms',
  ({ afterMs, asked, isOver }) => {
    expect(turn({ hasRoom: true })(afterMs, asked)).toBe(isOver);
  },
);

test('who begins to wait for the place gets it at the next page', () => {
  let hasRoom = true;
  const isOver = beginTurn(
    () => hasRoom,
    () => 0,
  );
  expect(isOver(30)).toBe(false);
  hasRoom = false;
  expect(isOver(31)).toBe(true);
});
