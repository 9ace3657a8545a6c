import { expect, test } from 'vitest';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

test('a finished instance is synced again after SYNC_INTERVAL_MINUTES, without anybody asking', async () => {
  const { control, session } = await startTestApp({ env: { SYNC_INTERVAL_MINUTES: '0.02' } });
  const company = await control.addCompany({
    name: 'Often',
    plan: 'starter',
    contacts: 20,
    conversations: 20,
  });
  const browser = session();
  const id = await install(browser, company);
  const first = await waitForStatus(browser, id, isSynced);
  const second = await waitForStatus(
    browser,
    id,
    (status) =>
      isSynced(status) && status.resources.contacts?.started_at !== first.resources.contacts?.started_at,
  );
  const { finished_at } = first.resources.contacts ?? {};
  const { started_at } = second.resources.contacts ?? {};
  expect(Date.parse(started_at ?? '') - Date.parse(finished_at ?? '')).toBeGreaterThanOrEqual(1_200);
  expect(second.resources.contacts).toMatchObject({ records: 20, stored: 20 });
});

test('a paused instance is left alone', async () => {
  const { control, session } = await startTestApp({ env: { SYNC_INTERVAL_MINUTES: '0.02' } });
  const [paused, other] = [
    await control.addCompany({ name: 'Paused', plan: 'starter', contacts: 20, conversations: 20 }),
    await control.addCompany({ name: 'Other', plan: 'starter', contacts: 20, conversations: 20 }),
  ];
  const browser = session();
  const id = await install(browser, paused);
  await waitForStatus(browser, id, isSynced);
  await browser.submit((await browser.get(`/instances/${id}`)).form(`/instances/${id}/pause`));
  const { n: last } = (await control.requests()).at(-1) ?? { n: 0 };

  // Another instance that comes round twice shows that the sweep has been here.
  const otherId = await install(browser, other);
  const first = await waitForStatus(browser, otherId, isSynced);
  await waitForStatus(
    browser,
    otherId,
    ({ resources }) => resources.contacts?.started_at !== first.resources.contacts?.started_at,
  );
  const seen = (await control.requests(last)).filter(({ company_id }) => company_id === paused.id);
  expect(seen).toEqual([]);
});
