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
  tokens: 'select count(*) as found from tokens where instance_id = ?',
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
    expect.stringContaining(`Orphan & Söhne (${id}) is disconnected, and its tokens are deleted.`),
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
    says: expect.stringContaining(`Del?[2J?K?eted (${id}) is disconnected`),
  });
  expect(countOf('records', id)).toBeGreaterThanOrEqual(60);
  expect(await disconnect('--delete-data', id)).toEqual({
    code: 0,
    says: expect.stringContaining('Its copied data is deleted.'),
  });
  expect(countOf('records', id)).toBe(0);
});

test.each([
  ['an instance that is not there', ['ins_nobody'], 1, /There is no instance ins_nobody .*Nothing was done/],
  ['no instance', [], 2, /Name one instance.*Nothing was done.*npm run disconnect/],
  ['two at once', ['ins_1', 'ins_2'], 2, /Name one instance.*Nothing was done/],
  ['what it does not know', ['ins_1', '--delete'], 2, /'--delete'.*Nothing was done.*--delete-data/],
])('with %s it does nothing, and says so', async (_what, args, code, says) => {
  expect(await disconnect(...args)).toEqual({ code, says: expect.stringMatching(says) });
});
