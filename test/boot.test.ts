import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openDatabase } from '../src/store/open-database.ts';
import { createWorld } from './acceptance/support/world.ts';
import { installInstance } from './support/install-instance.ts';
import { spawnEntry } from './support/spawn-entry.ts';
import { waitFor } from './support/wait-for.ts';

const world = await createWorld();
const report = join(world.dir, 'events');
writeFileSync(report, '');
Object.assign(world.env, {
  TEST_EVENTS: join(import.meta.dirname, 'acceptance/handlers/record-events.ts'),
  TEST_REPORT: report,
});
const events = () =>
  readFileSync(report, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

test.each([
  ['TEST_HANDLER', 'handler.ts', 'throw new Error("no key");', 'does not load', 'no key'],
  ['TEST_HANDLER', 'handler.ts', 'export const onChange = 1;', 'exports no function onChanges'],
  ['TEST_HANDLER', 'handler.ts', 'export class onChanges {}', 'exports no function onChanges'],
  ['TEST_EVENTS', 'events.ts', 'throw new Error("no key");', 'does not load', 'no key'],
  ['TEST_EVENTS', 'events.ts', 'export const onEvent = 1;', 'exports no function onEvent'],
])('no process starts with a %s whose %s is: %s', async (variable, file, source, ...says) => {
  const path = join(world.dir, file);
  writeFileSync(path, source);
  const worker = spawnEntry('src/worker.ts', { ...world.env, [variable]: path }, { cwd: world.dir });
  expect((await worker.exited).code).toBe(1);
  for (const text of [`src/integration/${file}`, ...says]) expect(worker.output()).toContain(text);
});

test('a disconnect from the command line is told, and logged', async () => {
  const db = await openDatabase(world.databaseUrl);
  await installInstance(db, { id: 'ins_1', company_id: 'cmp_1', name: 'Acme' }, Date.now());
  await db.destroy();
  const { code, output } = await world.run('src/cli.ts', ['disconnect', 'ins_1', '--delete-data']);
  expect(code).toBe(0);
  const facts = { instanceId: 'ins_1', companyId: 'cmp_1', company: 'Acme', dataDeleted: true };
  expect(events()).toEqual([{ type: 'disconnected', ...facts }]);
  const logged = output.split('\n').find((line) => line.includes('the instance is disconnected')) ?? '';
  expect(JSON.parse(logged)).toMatchObject({ level: 'info', instanceId: 'ins_1', dataDeleted: true });
});

test('what is logged as an error is told by the process that meets it', async () => {
  const web = await world.startWeb();
  await world.redis.kill();
  const error = await waitFor(async () => events().find(({ type }) => type === 'error'), 'the error');
  expect(error.message).toBe('Redis fails; the app keeps trying');
  expect((await web.stop()).code).toBe(0);
});
