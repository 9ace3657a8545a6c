import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { InstanceStore } from '../../src/store/instances.ts';
import { NewerSchemaError } from '../../src/store/newer-schema.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { TokenStore } from '../../src/store/tokens.ts';
import { migrateFurther } from '../store/migrate-further.ts';
import { tempDir } from '../support/temp-dir.ts';
import { waitFor } from '../support/wait-for.ts';
import { accessTokenFrom } from './access-token.ts';
import { ANSWERED, setUpTokens } from './tokens-setup.ts';

const setup = await setUpTokens();
const { databaseUrl, redis, server, vault } = setup;

test('if the new grant cannot be written, nobody gets its access token', async () => {
  server.answerRefreshes({ rotating: true });
  await expect(
    accessTokenFrom(setup.newProcess({ store: setup.fillingStore().filling }), setup.id, 'at-0'),
  ).rejects.toThrow('disk full');
  expect((await setup.stored()).access).toBe('at-0');
});

test('a new grant that could not be written is written by the next who wants a token; the service is not asked again', async () => {
  server.answerRefreshes({ rotating: true });
  const { disk, filling } = setup.fillingStore();
  const process = setup.newProcess({ store: filling });
  await expect(accessTokenFrom(process, setup.id, 'at-0')).rejects.toThrow('disk full');
  setup.now += 10 * 60_000;
  await expect(process.rotate(setup.id)).rejects.toThrow('disk full');
  disk.isFull = false;
  expect(await accessTokenFrom(process, setup.id, 'at-0')).toBe('at-1');
  expect(server.requests.length).toBe(1);
  // Its lives count from when it was granted, not from when it was written.
  expect(await setup.stored()).toMatchObject({
    access: 'at-1',
    refresh: 'rt-1',
    refresh_issued_at: setup.start,
    rotations: 1,
    refreshes: 1,
  });
  await process.rotate(setup.id);
  expect(await accessTokenFrom(process, setup.id)).toBe('at-2');
});

test('a new grant that could not be written is written by its process as soon as it can be; no other asks the service meanwhile', async () => {
  server.answerRefreshes({ rotating: true });
  const { disk, filling } = setup.fillingStore();
  await expect(setup.newProcess({ store: filling }).rotate(setup.id)).rejects.toThrow('disk full');
  const sibling = setup.newProcess();
  await expect(sibling.rotate(setup.id)).rejects.toMatchObject({
    remedy: 'wait',
    message: /cannot write it yet/,
  });
  // It is tried as often as it takes, and each time the others are told anew to wait.
  await redis.del(`tokens:{${setup.id}}:unwritten:pause`);
  const { refused } = disk;
  await waitFor(() => disk.refused >= refused + 2);
  await expect(sibling.rotate(setup.id)).rejects.toMatchObject({ message: /cannot write it yet/ });
  disk.isFull = false;
  await waitFor(async () => (await setup.stored()).access === 'at-1');
  expect(await setup.stored()).toMatchObject({ refresh: 'rt-1', rotations: 1 });
  expect(server.requests.length).toBe(1);
  await waitFor(async () => (await sibling.rotate(setup.id).catch(() => 'waits')) === undefined);
  expect(server.requests.length).toBe(2);
});

test('a new grant that could not be written is written at the end of its process, if it can be by then', async () => {
  server.answerRefreshes({ rotating: true });
  const { disk, filling } = setup.fillingStore();
  const process = setup.newProcess({ store: filling });
  await expect(process.rotate(setup.id)).rejects.toThrow('disk full');
  disk.isFull = false;
  await process.close();
  expect(await setup.stored()).toMatchObject({ access: 'at-1', refresh: 'rt-1' });
});

test('a new grant that cannot be written yet at the end of its process is tried on, and told when it is lost', async () => {
  server.answerRefreshes({ rotating: true });
  const { disk, filling } = setup.fillingStore();
  const lost: unknown[] = [];
  const process = setup.newProcess({ store: filling, onLost: (told) => lost.push(told) });
  await expect(process.rotate(setup.id)).rejects.toThrow('disk full');
  const { refused } = disk;
  const closing = process.close();
  await waitFor(() => disk.refused >= refused + 3);
  disk.isFull = false;
  await closing;
  expect(await setup.stored()).toMatchObject({ access: 'at-1', refresh: 'rt-1' });
  expect(lost).toEqual([]);

  disk.isFull = true;
  await expect(process.rotate(setup.id)).rejects.toThrow('disk full');
  await expect(process.close()).rejects.toThrow(/could not be written/);
  expect(lost).toEqual([{ instanceId: setup.id, error: expect.objectContaining({ message: 'disk full' }) }]);
  expect(await setup.stored()).toMatchObject({ access: 'at-1', refresh: 'rt-1' });
});

test('a new grant that could not be written before an install is not told as lost at the end', async () => {
  server.answerRefreshes({ rotating: true });
  const lost: unknown[] = [];
  const process = setup.newProcess({
    store: setup.fillingStore().filling,
    onLost: (told) => lost.push(told),
  });
  await expect(process.rotate(setup.id)).rejects.toThrow('disk full');
  await setup.newProcess().install(setup.company(), setup.grant('at-installed', 'rt-installed'));
  await process.close();
  expect(lost).toEqual([]);
  expect(await setup.stored()).toMatchObject({ access: 'at-installed', refresh: 'rt-installed' });
});

test('while the database cannot be written, no refresh token is spent: its successor could not be kept', async () => {
  server.answerRefreshes({ rotating: true });
  const other = new Sqlite(databaseUrl.slice('file:'.length));
  other.exec('begin immediate');
  await expect(setup.tokens.rotate(setup.id)).rejects.toThrow(/locked/);
  other.close();
  expect(server.requests).toEqual([]);
  await setup.tokens.rotate(setup.id);
  expect(await setup.stored()).toMatchObject({ refresh: 'rt-1', rotations: 1 });
});

test('a grant that could not be written does not come back over an install', async () => {
  server.answerRefreshes({ rotating: true });
  const process = setup.newProcess({ store: setup.fillingStore().filling });
  await expect(accessTokenFrom(process, setup.id, 'at-0')).rejects.toThrow('disk full');
  await setup.newProcess().install(setup.company(), setup.grant('at-installed', 'rt-installed'));
  expect(await accessTokenFrom(process, setup.id, 'at-0')).toBe('at-installed');
  await expect(accessTokenFrom(process, setup.id, 'at-installed')).rejects.toThrow('disk full');
  const sent = server.requests.map(({ body }) => new URLSearchParams(body).get('refresh_token'));
  expect(sent).toEqual(['rt-0', 'rt-installed']);
});

test('a refresh that is under way while a newer version migrates the database is written; no further one is begun', async () => {
  const path = `${tempDir()}/app.db`;
  const own = await openDatabase(`file:${path}`);
  const ownStore = new TokenStore(own);
  const old = setup.newProcess({ store: ownStore, instances: new InstanceStore(own) });
  await old.install(setup.company(), setup.grant('at-0', 'rt-0'));
  const held = server.holdAnswer();
  const refreshing = accessTokenFrom(old, setup.id, 'at-0');
  await held.asked;
  const newer = new Sqlite(path);
  migrateFurther(newer);
  newer.close();
  held.answer(200, ANSWERED);
  expect(await refreshing).toBe('at-late');
  const row = await ownStore.find(setup.id);
  expect(vault.open(row?.refresh_token ?? '', { instanceId: setup.id, purpose: 'refresh_token' })).toBe(
    'rt-late',
  );

  const isNoticed = () =>
    ownStore.checkWritable().then(
      () => false,
      () => true,
    );
  await waitFor(isNoticed);
  await expect(old.rotate(setup.id)).rejects.toThrow(NewerSchemaError);
  expect(server.requests.length).toBe(1);
  await own.destroy();
});
