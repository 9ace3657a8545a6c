import { expect, test } from 'vitest';
import { pathOf } from '../../src/store/existing-file.ts';
import { startTestApp } from '../support/test-app.ts';

test('a process that makes a new database says where, once: a wrong path, or a volume that is not mounted, is seen', async () => {
  const testApp = await startTestApp({ workers: false });
  await testApp.join();
  const told = testApp.log.lines.filter(({ msg }) => msg === 'a new database was made');
  expect(told).toMatchObject([{ level: 'info', path: pathOf(testApp.config.databaseUrl) }]);
});
