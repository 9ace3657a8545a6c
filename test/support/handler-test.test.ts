import { expect, test } from 'vitest';
import { startHandlerTest } from './handler-test.ts';

test('what a handler throws ends the wait for its sync', async () => {
  const { sync } = await startHandlerTest(
    async ({ resource }) => {
      if (resource === 'contacts') throw new Error('The CRM answered 500.');
    },
    { contacts: [{ id: 'crd_ada' }] },
  );
  await expect(sync()).rejects.toThrow('The CRM answered 500.');
});
