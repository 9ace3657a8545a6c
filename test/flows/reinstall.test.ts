import { expect, test } from 'vitest';
import { install, isSynced, largestWindow, readStatus, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

// Near its end the sync takes what is kept for people: long enough for the second install to come before, on a slow machine too.
const WINDOW_MS = 15_000;

test('installing again while the sync waits for the limit stays within it, and the sync goes on', async () => {
  const { control, session } = await startTestApp({ sandbox: { windowMs: WINDOW_MS } });
  const company = await control.addCompany({
    name: 'Impatient',
    plan: 'enterprise',
    contacts: 8_000,
    conversations: 8_000,
  });
  const first = session();
  const id = await install(first, company);
  await waitForStatus(first, id, ({ resources }) =>
    Object.values(resources).every(({ waiting_for }) => waiting_for === 'limit'),
  );
  const second = session();
  expect(await install(second, company)).toBe(id);
  expect(isSynced(await readStatus(second, id))).toBe(false);
  await waitForStatus(second, id, isSynced);

  const calls = (await control.requests()).filter(
    ({ company_id, path }) => company_id === company.id && !path.startsWith('/oauth'),
  );
  expect(calls.filter(({ path }) => path === '/me').length).toBe(2);
  expect(calls.filter(({ status }) => status !== 200)).toEqual([]);
  expect(
    largestWindow(
      calls.map(({ at }) => at),
      WINDOW_MS,
    ),
  ).toBe(120);
});
