import { expect, it } from 'vitest';
import { handlerView } from '../../../src/web/view/list-view.ts';
import { at, HANDLER, listStatus, NOW } from '../status-fixtures.ts';

it.each([
  [HANDLER, 'Every change is delivered.', null],
  [{ ...HANDLER, pending: 1_200 }, '1,200 changes pending.', null],
  [
    { ...HANDLER, pending: 1, last_error: 'ECONNREFUSED', next_try_at: at(5_000) },
    '1 change pending.',
    'in 5 s',
  ],
  // The reason stands with the dead letter.
  [
    { ...HANDLER, dead_letters: 1, last_error: 'No.' },
    '1 dead letter; every other change is delivered.',
    null,
  ],
])('the handler’s progress is told to a developer: %j', (handler, progress, next) => {
  const shown = handlerView(listStatus({ handler }), NOW);
  expect([shown?.progress, shown?.error?.moment?.text ?? null]).toEqual([progress, next]);
  expect(shown?.reason).toBe(next === null ? null : 'ECONNREFUSED');
});

it('there is nothing to tell without a handler', () => {
  expect(handlerView(listStatus(), NOW)).toBeUndefined();
});
