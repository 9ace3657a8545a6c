import { expect, test } from 'vitest';
import { onChanges } from '../../src/integration/handler.ts';
import { startHandlerTest } from '../support/handler-test.ts';

test('the handler counts what a sync brings, and what is deleted afterwards', async () => {
  const { sync, change, log } = await startHandlerTest(onChanges ?? expect.fail('There is no handler.'), {
    contacts: [{ id: 'crd_ada', name: 'Ada' }],
  });
  expect(await sync()).toContainEqual(
    expect.objectContaining({ id: 'crd_ada', document: expect.objectContaining({ name: 'Ada' }) }),
  );
  change({ resource: 'contacts', delete: 1 });
  expect(await sync()).toMatchObject([{ resource: 'contacts', change: 'deleted', id: 'crd_ada' }]);
  expect(log.findLast(({ msg }) => msg === 'the handler got changes')).toMatchObject({
    resource: 'contacts',
    ...{ created: 0, changed: 0, deleted: 1 },
  });
});
