import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';
import { startEchoProxy } from './echo-proxy.ts';

const proxy = await startEchoProxy();
const urls = { SERVICE_API_URL: `${proxy.origin}/api`, SERVICE_AUTH_URL: `${proxy.origin}/auth` };
const app = await startTestApp({ workers: false, env: urls });
proxy.lead(app.sandbox.origin);

test('a record whose id is the access token is set aside, and nothing of it stands in a log, though the web process does not know it', async () => {
  const company = await app.control.addCompany({
    name: 'Acme',
    plan: 'enterprise',
    contacts: 3,
    conversations: 3,
  });
  const browser = app.session();
  const id = await install(browser, company);
  // So the token of the install is over, and the worker gets another one.
  await app.control.clock({ advance_ms: 2 * 3_600_000 });
  let token = '';
  proxy.amend(/\/contacts/, (body, sent) => {
    token = sent;
    const [first, ...others] = body._results as { id: string }[];
    return { ...body, _results: [{ ...first, id: sent }, ...others] };
  });
  const worker = spawnEntry('src/worker.ts', { ...app.env, LOG_LEVEL: 'trace' });
  const status = await waitForStatus(browser, id, isSynced);

  const { contacts } = status.resources;
  expect(contacts).toMatchObject({ records: 2, set_aside: { quarantined: 1 } });
  const page = await browser.get(`/instances/${id}`);
  expect(page.body).toContain('Its id holds a secret of the app.');
  expect(token).not.toBe('');
  for (const address of [`/instances/${id}`, `/instances/${id}/contacts`, `/instances/${id}/status`]) {
    expect((await browser.get(address)).body, address).not.toContain(token);
  }
  const db = new Sqlite(app.config.databaseUrl.replace('file:', ''), { readonly: true });
  expect(db.prepare('select count(*) from records where id = ?').pluck().get(token)).toBe(0);
  db.close();

  // Somebody has the address all the same, or the copy has it from before.
  expect((await browser.get(`/instances/${id}/contacts/${token}`)).status).toBe(404);
  await expect.poll(() => app.log.text()).toContain(`"path":"/instances/${id}/contacts/:recordId"`);
  expect(app.log.text()).not.toContain(token);
  expect(worker.output()).not.toContain(token);
});
