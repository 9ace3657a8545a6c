import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { InstanceStore } from '../../src/store/instances.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { LostFileError } from '../../src/store/own-file.ts';
import { TokenStore } from '../../src/store/tokens.ts';
import { installedRows } from '../../src/tokens/installed-rows.ts';
import { migrateFurther } from '../store/migrate-further.ts';
import { tempDir } from '../support/temp-dir.ts';
import { waitFor } from '../support/wait-for.ts';
import { setUpTokens } from './tokens-setup.ts';

const setup = await setUpTokens();
const { db, instances, server, store } = setup;

/** An install whose grant cannot be written yet. */
async function installInTrouble() {
  const { disk, filling } = setup.fillingStore();
  const told: unknown[] = [];
  const process = setup.newProcess({
    store: filling,
    onUnwritten: ({ instanceId }) => told.push(['unwritten', instanceId]),
    onWritten: ({ instanceId, isNewest }) => told.push([isNewest ? 'written' : 'gave way', instanceId]),
    onLost: ({ instanceId }) => told.push(['lost', instanceId]),
  });
  // Some moments after the one that is stored.
  const company = setup.company(setup.start + 1_000);
  const installing = process.install(company, setup.grant('at-new', 'rt-new'));
  installing.catch(() => undefined);
  await waitFor(() => disk.refused > 0);
  return { disk, process, installing, told };
}

test('an install waits some seconds for its grant to be written', async () => {
  const { disk, installing, told } = await installInTrouble();
  disk.isFull = false;
  await installing;
  expect(await setup.stored()).toMatchObject({ access: 'at-new', refresh: 'rt-new' });
  expect(told).toEqual([
    ['unwritten', setup.id],
    ['written', setup.id],
  ]);
});

test('the grant of an install that cannot be written for longer is written as soon as it can be; nobody refreshes meanwhile', async () => {
  const { disk, installing } = await installInTrouble();
  await expect(installing).rejects.toThrow('disk full');
  await expect(setup.newProcess().rotate(setup.id)).rejects.toMatchObject({
    remedy: 'wait',
    message: /cannot write it yet/,
  });
  expect(server.requests).toEqual([]);
  disk.isFull = false;
  await waitFor(async () => (await setup.stored()).access === 'at-new');
  server.answerRefreshes({ rotating: true });
  await waitFor(() =>
    setup
      .newProcess()
      .rotate(setup.id)
      .then(() => true),
  );
  expect(await setup.stored()).toMatchObject({ access: 'at-1', refresh: 'rt-1' });
});

test('a company that is disconnected before the grant of an install can be written stays so', async () => {
  const { disk, process, installing, told } = await installInTrouble();
  await store.disconnect(setup.id);
  disk.isFull = false;
  expect(await installing).toBe(false);
  expect(told).toEqual([
    ['unwritten', setup.id],
    ['gave way', setup.id],
  ]);
  expect(await store.find(setup.id)).toBeUndefined();
  expect((await instances.find(setup.id))?.status).toBe('disconnected');
  // Who installs it afterwards has it.
  await process.install(setup.company(), setup.grant('at-9', 'rt-9'));
  expect(await setup.stored()).toMatchObject({ access: 'at-9' });
  expect((await instances.find(setup.id))?.status).toBe('active');
});

test('a company that is new, and disconnected before the first of two grants can be written, stays so', async () => {
  setup.id = 'ins_new';
  const { disk, installing } = await installInTrouble();
  await setup.newProcess().install(setup.company(), setup.grant('at-9', 'rt-9'));
  await store.disconnect(setup.id);
  disk.isFull = false;
  await installing;
  expect(await store.find(setup.id)).toBeUndefined();
  expect((await instances.find(setup.id))?.status).toBe('disconnected');
});

test('a grant that was kept for long gives way to one that came meanwhile', async () => {
  const cameAt = Date.now() - 20 * 60_000;
  await setup.newProcess().install(setup.company(cameAt + 15 * 60_000), setup.grant('at-b', 'rt-b'));
  const since = { askedAt: cameAt, generation: await instances.accessGeneration(setup.id) };
  const rows = installedRows(setup.vault, setup.company(cameAt), setup.grant('at-a', 'rt-a'));
  expect(await store.install(...rows, { ...since, heldMs: 20 * 60_000 })).toBe(false);
  // What seems to have come later than one that has just come is the work of a clock that was set.
  expect(await store.install(...rows, { ...since, heldMs: 0 })).toBe(true);
});

test('a grant of an install that cannot be written until the end of its process is told as lost', async () => {
  const { process, told } = await installInTrouble();
  await expect(process.close()).rejects.toThrow(/could not be written/);
  expect(told).toEqual([
    ['unwritten', setup.id],
    ['lost', setup.id],
  ]);
});

test('the grant of an install that comes when a newer version has just migrated the database is written', async () => {
  const path = `${tempDir()}/app.db`;
  const own = await openDatabase(`file:${path}`);
  const ownStore = new TokenStore(own);
  const old = setup.newProcess({ store: ownStore, instances: new InstanceStore(own) });
  const newer = new Sqlite(path);
  migrateFurther(newer);
  newer.close();
  await old.install(setup.company(), setup.grant('at-new', 'rt-new'));
  const row = await ownStore.find(setup.id);
  const whose = { instanceId: setup.id, purpose: 'refresh_token' } as const;
  expect(setup.vault.open(row?.refresh_token ?? '', whose)).toBe('rt-new');
  await own.destroy();
});

test('a grant that its process can write never again keeps nobody else from refreshing, and is told as lost at its end', async () => {
  const told: unknown[] = [];
  const filling = new (class extends TokenStore {
    override async install(): Promise<boolean> {
      throw new LostFileError('has been removed');
    }
  })(db);
  const process = setup.newProcess({
    store: filling,
    onUnwritten: () => told.push('tried on'),
    onLost: ({ instanceId }) => told.push(`lost: ${instanceId}`),
  });
  const installing = process.install(setup.company(setup.start + 1_000), setup.grant('at-new', 'rt-new'));
  await expect(installing).rejects.toThrow(LostFileError);
  server.answerRefreshes();
  await setup.newProcess().rotate(setup.id);
  expect(await setup.stored()).toMatchObject({ access: 'at-1' });
  await expect(process.close()).rejects.toThrow(/could not be written/);
  expect(told).toEqual([`lost: ${setup.id}`]);
});

test('a grant of an install that is still being written when the time is over is told as lost, with that as the reason', async () => {
  const lost: unknown[] = [];
  const hanging = new (class extends TokenStore {
    override install(): Promise<boolean> {
      return new Promise(() => undefined);
    }
  })(db);
  const process = setup.newProcess({ store: hanging, onLost: ({ error }) => lost.push(error) });
  void process.install(setup.company(), setup.grant('at-new', 'rt-new'));
  await expect(process.close()).rejects.toThrow(/could not be written/);
  expect(lost).toEqual([expect.objectContaining({ message: expect.stringContaining('still being tried') })]);
});
