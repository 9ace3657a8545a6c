import { expect, test } from 'vitest';
import { install, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

/** Of a window of 120 requests: a tenth, and what is kept for people. */
const LEFT_BY_CALLS = 14;

/** Pages of the other list, the first of which is there before the calls stop. */
const PAGES = 6;

test('own logic that calls without end leaves a tenth of the window to the pages of another list', async () => {
  const isUsedUp = Promise.withResolvers<void>();
  let calls = 0;
  const { control, session } = await startTestApp({
    ownLogic: async ({ resource }, { service }) => {
      if (resource === 'conversations') return isUsedUp.promise;
      for (;;) {
        await service.listTags();
        calls++;
      }
    },
  });
  const company = await control.addCompany({
    name: 'Busy',
    plan: 'enterprise',
    contacts: 1,
    conversations: PAGES * 100,
  });
  const browser = session();
  const id = await install(browser, company);
  try {
    // Or one more, as somebody else's request may come in between.
    await waitForStatus(browser, id, ({ budget }) => (budget.remaining ?? 120) <= LEFT_BY_CALLS + 1);
  } finally {
    isUsedUp.resolve();
  }
  const { budget } = await waitForStatus(
    browser,
    id,
    ({ resources }) => resources.conversations?.finished_at !== null,
  );
  // The calls have taken none of it, though they came first.
  expect((budget.remaining ?? 0) + PAGES - 1).toBeGreaterThanOrEqual(LEFT_BY_CALLS);
  expect(calls).toBeGreaterThan(90);
});
