import { expect, test } from 'vitest';
import { openTestStore } from './test-store.ts';

const { instances, tokens, addInstance } = await openTestStore();

const OVER = 'The grant is over.';

/** A new instance, in a state, with the tokens that it has. */
async function instanceIn(state: 'active' | 'paused') {
  const id = await addInstance();
  if (state === 'paused') await instances.setStatus(id, 'paused', { from: ['active'] });
  const row = (await tokens.find(id)) ?? expect.unreachable();
  const read = async () => {
    const { status, notice } = (await instances.find(id)) ?? expect.unreachable();
    return { status, notice };
  };
  return { id, row, read };
}

test.each(['active', 'paused'] as const)(
  'the end of the grant of one that is %s is noted once',
  async (state) => {
    const { id, row, read } = await instanceIn(state);
    expect(await tokens.reject(id, row.version, OVER)).toBe(true);
    expect(await read()).toEqual({ status: 'needs_reauthorization', notice: OVER });
    expect(await tokens.reject(id, row.version, 'Once more.')).toBe(false);
    expect((await read()).notice).toBe(OVER);
  },
);

test('the end of a grant says nothing about the one that has come since', async () => {
  const { id, row, read } = await instanceIn('active');
  expect(await tokens.replace(row, row.version)).toBe(true);
  expect(await tokens.reject(id, row.version, OVER)).toBe(false);
  expect(await read()).toEqual({ status: 'active', notice: null });
});

test('a refresh leaves a paused instance paused', async () => {
  const { row, read } = await instanceIn('paused');
  expect(await tokens.replace(row, row.version)).toBe(true);
  expect((await read()).status).toBe('paused');
});

test('a refresh that comes after all awakes an instance whose grant was taken for over', async () => {
  const { id, row, read } = await instanceIn('active');
  await tokens.reject(id, row.version, OVER);
  expect(await tokens.replace(row, row.version)).toBe(true);
  expect(await read()).toEqual({ status: 'active', notice: null });
});

test('an end is taken back by its words, and only of the grant that it was noted of', async () => {
  const { id, row, read } = await instanceIn('active');
  await tokens.reject(id, row.version, OVER);
  expect(await tokens.takeBackEnd(id, row.version, ['Other words.'])).toBe(false);
  expect(await tokens.takeBackEnd(id, row.version + 1, [OVER])).toBe(false);
  expect((await read()).status).toBe('needs_reauthorization');
  expect(await tokens.takeBackEnd(id, row.version, ['Other words.', OVER])).toBe(true);
  expect(await read()).toEqual({ status: 'active', notice: null });
  expect(await tokens.takeBackEnd(id, row.version, [OVER])).toBe(false);
});
