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

test('ends are taken back by their words, and only of the grants that they were noted of', async () => {
  const [{ id, row, read }, other] = [await instanceIn('active'), await instanceIn('paused')];
  for (const one of [{ id, row }, other]) await tokens.reject(one.id, one.row.version, OVER);
  const listed = (await tokens.listEnded()).filter((one) => [id, other.id].includes(one.instance_id));
  expect(listed.map(({ notice }) => notice)).toEqual([OVER, OVER]);
  expect(await tokens.takeBackEnds(listed.map((one) => ({ ...one, notice: 'Other words.' })))).toEqual([]);
  expect(await tokens.takeBackEnds(listed.map((one) => ({ ...one, version: one.version + 1 })))).toEqual([]);
  expect((await read()).status).toBe('needs_reauthorization');
  expect(
    await tokens.takeBackEnds([
      { ...row, notice: OVER },
      { ...other.row, notice: 'x' },
    ]),
  ).toEqual([id]);
  expect(await read()).toEqual({ status: 'active', notice: null });
  expect((await other.read()).status).toBe('needs_reauthorization');
  expect(await tokens.takeBackEnds(listed)).toEqual([other.id]);
  expect(await tokens.takeBackEnds(listed)).toEqual([]);
});
