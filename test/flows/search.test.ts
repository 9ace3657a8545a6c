import { expect, test } from 'vitest';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

test('what was synced is found, soon', async () => {
  const { control, log, session } = await startTestApp();
  const company = await control.addCompany({
    name: 'Findable',
    plan: 'starter',
    contacts: 730,
    conversations: 0,
  });
  const browser = session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  const { body } = await browser.get(`/instances/${id}/contacts.ndjson`);
  const contacts: { id: string; handles: { handle: string }[] }[] = body
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const last = contacts.findLast(({ handles }) => handles.length > 0);
  if (last === undefined) throw new Error('no contact has a handle');
  const query = new URLSearchParams({ q: last.handles[0]?.handle ?? '' });
  const found = () => browser.get(`/instances/${id}/contacts?${query}`);
  await waitFor(async () => (await found()).body.includes(`/contacts/${last.id}`));
  expect((await found()).body).not.toContain('searchable');
  expect(log.lines.filter(({ level }) => level !== 'info' && level !== 'debug' && level !== 'trace')).toEqual(
    [],
  );
});
