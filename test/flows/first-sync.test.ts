import { expect, test } from 'vitest';
import { downloadIds, install, isSynced, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

test('an administrator installs, and everything is there once, in under a window', async () => {
  const { control, session } = await startTestApp();
  const company = await control.addCompany({
    name: 'Åkesson & Søn',
    plan: 'starter',
    contacts: 730,
    conversations: 350,
  });
  const browser = session();
  const id = await install(browser, company);
  const status = await waitForStatus(browser, id, isSynced);

  expect(status).toMatchObject({ name: 'Åkesson & Søn', company_id: company.id, status: 'active' });
  for (const resource of ['contacts', 'conversations']) {
    const ids = await downloadIds(browser, id, resource);
    expect(ids.length).toBe(company.counts[resource]);
    expect(new Set(ids).size).toBe(ids.length);
  }
  const calls = (await control.requests()).filter((entry) => entry.company_id === company.id);
  expect(calls.filter(({ status }) => status === 429)).toEqual([]);
});
