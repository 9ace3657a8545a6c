import Sqlite from 'better-sqlite3';
import { afterAll, expect, test } from 'vitest';
import { Vault } from '../../src/tokens/vault.ts';
import { consent, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

const { config, control, session } = await startTestApp();
const database = new Sqlite(config.databaseUrl.replace(/^file:/, ''), { readonly: true });
afterAll(() => database.close());
const vault = new Vault(config.tokenKeys);

function refreshToken(instanceId: string): string {
  const envelope = database
    .prepare('select refresh_token from tokens where instance_id = ?')
    .pluck()
    .get(instanceId) as string;
  return vault.open(envelope, { instanceId, purpose: 'refresh_token' });
}

test('of two installs of a company at once, the later grant stays, though the other is stored after it; both browsers have the instance', async () => {
  const company = await control.addCompany({ name: 'Acme', plan: 'starter', contacts: 5, conversations: 5 });
  const [one, two] = [session(), session()];
  const page = await one.get('/install');
  // The first browser's grant comes first; whose it is, the service says late, and has ended it by then.
  await control.fault({ match: { path: '/me' }, fault: { delay_ms: 4_000, revoke: 'grant' } });
  const first = consent(one, page, company);
  await waitFor(async () => (await control.faults())[0]?.used === 1);
  const id = await install(two, company);
  const newer = refreshToken(id);
  expect((await first).url.pathname).toBe(`/instances/${id}`);
  expect(refreshToken(id)).toBe(newer);
  for (const browser of [one, two]) {
    expect(await waitForStatus(browser, id, isSynced)).toMatchObject({ status: 'active', notice: null });
  }
  expect((await readStatus(one, id)).name).toBe('Acme');
});
