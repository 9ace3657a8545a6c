import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { downloadIds, install, isSynced, waitForStatus } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';

const { control, config, env, session } = await startTestApp();

const addCompany = (name: string) => control.addCompany({ name, plan: 'enterprise', contacts: 60 });

async function disconnect(...args: string[]) {
  const command = spawnEntry('src/disconnect.ts', env, { args });
  const { code } = await command.exited;
  return { code, says: command.output() };
}

const LEFT = {
  tokens: 'select count(access_token) as found from tokens where instance_id = ?',
  records:
    'select count(*) as found from records where list in (select list from runs where instance_id = ?)',
} as const;

function countOf(what: keyof typeof LEFT, id: string): number {
  const db = new Sqlite(config.databaseUrl.replace('file:', ''), { readonly: true });
  const { found } = db.prepare(LEFT[what]).get(id) as { found: number };
  db.close();
  return found;
}

test('the documented command disconnects a company that no browser sees, while the app runs, and that one alone', async () => {
  const browser = session();
  const [gone, kept] = [await addCompany('Orphan & Söhne'), await addCompany('Stays')];
  const id = await install(browser, gone);
  const other = await install(browser, kept);
  await waitForStatus(browser, id, isSynced);
  const { code, says } = await disconnect(id);
  expect([code, says]).toEqual([
    0,
    expect.stringMatching(
      /^Disconnecting Orphan & Söhne .*\nIt is disconnected, and its tokens are deleted\.$/m,
    ),
  ]);
  expect(says).not.toContain('copied data');
  expect((await browser.get(`/instances/${id}`)).status).toBe(404);
  expect([countOf('tokens', id), countOf('tokens', other)]).toEqual([0, 1]);
  expect(countOf('records', id)).toBeGreaterThanOrEqual(60);
  await waitForStatus(browser, other, isSynced);
  // Installing again leads back to it, and to what was kept of it.
  expect(await install(browser, gone)).toBe(id);
  await waitForStatus(browser, id, isSynced);
  expect(await downloadIds(browser, id, 'contacts')).toHaveLength(60);
});

test('it deletes the copy, too, where that is asked for, also of a company that is disconnected already', async () => {
  const browser = session();
  const id = await install(browser, await addCompany('Del\u001b[2J\u009bK\u202eeted'));
  await waitForStatus(browser, id, isSynced);
  expect(await disconnect(id)).toEqual({
    code: 0,
    says: expect.stringContaining(`Disconnecting Del?[2J?K?eted (${id}) of file:`),
  });
  expect(countOf('records', id)).toBeGreaterThanOrEqual(60);
  expect(await disconnect('--delete-data', id)).toEqual({
    code: 0,
    says: expect.stringContaining('Its copied data is deleted.'),
  });
  expect(countOf('records', id)).toBe(0);
});

test('what npm keeps for itself, for want of the two dashes, is asked for again', async () => {
  const command = spawnEntry(
    'src/disconnect.ts',
    { ...env, npm_config_delete_data: 'true' },
    { args: ['x'] },
  );
  expect(await command.exited).toMatchObject({ code: 2 });
  expect(command.output()).toMatch(/npm has kept --delete-data.*Nothing was done.*-- INSTANCE_ID/);
});

test('while the database is locked it waits, and says when it was broken off, or did not come to it', async () => {
  const id = await install(session(), await addCompany('Locked'));
  const db = new Sqlite(config.databaseUrl.replace('file:', ''));
  db.exec('begin immediate');
  const broken = spawnEntry('src/disconnect.ts', env, { args: [id] });
  await broken.waitForOutput(/Disconnecting Locked/);
  expect(await broken.stop('SIGTERM')).toMatchObject({ code: 130 });
  expect(broken.output()).toContain('Broken off: run it again.');
  expect(await disconnect(id)).toEqual({
    code: 1,
    says: expect.stringMatching(/is not disconnected, and has to be once more: Another process has kept/s),
  });
  db.exec('rollback');
  db.close();
  expect(countOf('tokens', id)).toBe(1);
});

test.each([
  ['an instance that is not there', ['ins_nobody'], 1, /There is no instance ins_nobody .*Nothing was done/],
  ['no instance', [], 2, /Name one instance.*Nothing was done.*npm run disconnect/],
  ['two at once', ['ins_1', 'ins_2'], 2, /Name one instance.*Nothing was done/],
  ['what it does not know', ['ins_1', '--delete'], 2, /'--delete'.*Nothing was done.*--delete-data/],
])('with %s it does nothing, and says so', async (_what, args, code, says) => {
  expect(await disconnect(...args)).toEqual({ code, says: expect.stringMatching(says) });
});
