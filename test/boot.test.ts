import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openDatabase } from '../src/store/open-database.ts';
import { createWorld } from './acceptance/support/world.ts';
import { findFreePort } from './support/free-port.ts';
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
  ['TEST_HANDLER', 'handler.ts', 'process.exit();', 'ends the process when it loads'],
  ['TEST_EVENTS', 'events.ts', 'throw new Error("no key");', 'does not load', 'no key'],
  ['TEST_EVENTS', 'events.ts', 'export const onEvent = 1;', 'exports no function onEvent'],
  ['TEST_SETTINGS', 'settings.ts', 'throw new Error("no zod");', 'cannot be used', 'no zod'],
  ['TEST_SETTINGS', 'settings.ts', 'export const SETTINGS = {};', 'must export SETTINGS'],
])('no process starts with a %s whose %s is: %s', async (variable, file, source, ...says) => {
  const path = join(world.dir, file);
  writeFileSync(path, source);
  const worker = spawnEntry('src/worker.ts', { ...world.env, [variable]: path }, { cwd: world.dir });
  expect((await worker.exited).code).toBe(1);
  for (const text of [`src/integration/${file}`, ...says]) expect(worker.output()).toContain(text);
});

const SETTINGS = join(import.meta.dirname, 'acceptance/handlers/crm-settings.ts');
const CRM = { TEST_SETTINGS: SETTINGS, CRM_URL: 'https://crm.example', CRM_LOGIN: 'correct horse battery' };

test.each([
  ['src/start.ts', []],
  ['src/web.ts', []],
  ['src/worker.ts', []],
  ['src/cli.ts', ['disconnect', 'ins_1']],
])('%s lists what is wrong with the settings of the fork and of the app', async (entry, args) => {
  const env = { ...world.env, TEST_SETTINGS: SETTINGS, LOG_LEVEL: 'loud', CRM_URL: 'crm', CRM_LOGIN: '' };
  const started = spawnEntry(entry, env, { cwd: world.dir, args });
  expect((await started.exited).code).toBe(1);
  expect(started.output()).toContain(`The configuration has 3 problems (.env.example explains every variable):
  LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent (it is "loud")
      example: LOG_LEVEL=info
  CRM_URL is wrong: Invalid URL
      example: CRM_URL=https://crm.example
  CRM_LOGIN is not set, and src/integration/settings.ts needs it
      example: CRM_LOGIN=<from the CRM>
`);
});

test('handler and events get the settings, and nothing shows their secrets', async () => {
  const [handler, onEvent] = [join(world.dir, 'quote.ts'), join(world.dir, 'settings-of-events.ts')];
  writeFileSync(
    handler,
    `export async function onChanges(batch, { settings, logger }) {
      logger.info({ settings, list: [settings.CRM_LOGIN] }, 'called');
      throw new Error(\`\${settings.CRM_URL} refuses \${settings.CRM_LOGIN}, \${settings.CRM_BATCH + 1}.\`);
    }`,
  );
  writeFileSync(
    onEvent,
    `import { appendFileSync } from 'node:fs';
    export const onEvent = ({ type, error }, { settings }) =>
      appendFileSync(process.env.TEST_REPORT, JSON.stringify({ type, error, ...settings }) + '\\n');`,
  );
  const env = { ...CRM, TEST_EVENTS: onEvent, HANDLER_RETRY_SECONDS: '0.01' };
  const { web, worker } = await world.start({ handler, env });
  const { id, browser } = await world.installed({ name: 'Acme', contacts: 1, conversations: 0 });
  const deadLetter = () => events().find((event) => event.type === 'dead_letter');
  await waitFor(() => deadLetter() !== undefined, 'the dead letter');
  const error = 'https://crm.example refuses [redacted], 51.';
  expect(deadLetter()).toMatchObject({ error, CRM_BATCH: 50, CRM_LOGIN: CRM.CRM_LOGIN });
  const page = await browser.get(`/instances/${id}/settings`);
  expect(page.body).toContain(error);
  const log = worker.output();
  expect(log).toContain(
    '"settings":{"CRM_URL":"https://crm.example","CRM_LOGIN":"[redacted]","CRM_BATCH":50}',
  );
  expect(log).toContain('"list":["[redacted]"]');
  expect(page.body + log + web.output()).not.toContain('horse');
  await Promise.all([web.stop(), worker.stop()]);
  writeFileSync(report, '');
});

test('npm start answers as a worker, too, where WORKER_PORT says', async () => {
  const ports = await Promise.all([findFreePort(), findFreePort(), findFreePort()]);
  const [PORT, SANDBOX_PORT, WORKER_PORT] = ports.map(String);
  const start = spawnEntry('src/start.ts', {
    PORT,
    SANDBOX_PORT,
    WORKER_PORT,
    REDIS_URL: world.redis.url,
  } as never);
  await start.waitForOutput(/runs\./);
  const metrics = await (await fetch(`http://127.0.0.1:${WORKER_PORT}/metrics`)).text();
  expect(metrics).toContain('partner_app_sync_sweep_late_seconds 0');
  expect((await start.stop()).code).toBe(0);
});

test('a disconnect from the command line sends its event, and is logged', async () => {
  const db = await openDatabase(world.databaseUrl);
  await installInstance(db, { id: 'ins_1', company_id: 'cmp_1', name: 'Acme' }, Date.now());
  await db.destroy();
  const { code, output } = await world.run('src/cli.ts', ['disconnect', 'ins_1', '--delete-data']);
  expect(code).toBe(0);
  const facts = { instanceId: 'ins_1', companyId: 'cmp_1', company: 'Acme', dataDeleted: true };
  expect(events()).toEqual([{ type: 'disconnected', ...facts, writesDiscarded: 0 }]);
  const logged = output.split('\n').find((line) => line.includes('the instance is disconnected')) ?? '';
  expect(JSON.parse(logged)).toMatchObject({ level: 'info', instanceId: 'ins_1', dataDeleted: true });
});

test('the process that meets an error sends its event', async () => {
  const web = await world.startWeb();
  await world.redis.kill();
  const error = await waitFor(async () => events().find(({ type }) => type === 'error'), 'the error');
  expect(error.message).toBe('Redis fails; the app keeps trying');
  expect((await web.stop()).code).toBe(0);
});

test('a worker tells and counts what happens in its delivery process', async () => {
  const handler = join(world.dir, 'exit.ts');
  writeFileSync(
    handler,
    'export async function onChanges(batch, { service }) { await service.listTags(); process.exit(7); }',
  );
  const port = String(await findFreePort());
  await world.redis.start();
  const env = { WORKER_PORT: port, HANDLER_RETRY_SECONDS: '0.01' };
  await world.start({ handler, env });
  const { id } = await world.installed({ name: 'Exits', contacts: 1, conversations: 0 });
  const told = (type: string) => events().filter((event) => event.type === type);
  await waitFor(async () => told('dead_letter').length > 0, 'the dead letter');
  const error = 'The handler ended the delivery process: process.exit(7) (2 times)';
  expect(told('dead_letter')).toMatchObject([
    { instanceId: id, company: 'Exits', resource: 'contacts', error },
  ]);
  const messages = told('error').map(({ message }) => message);
  expect(messages).toContain('the delivery process ended, and starts again');
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  expect(metrics).toMatch(/partner_app_service_requests_total\{route="\/tags",outcome="200"\} [23]/);
});

test('a process whose database file is moved away ends, and says why', async () => {
  const other = await createWorld({ isPostgres: false });
  const worker = await other.startWorker();
  renameSync(join(other.dir, 'app.db'), join(other.dir, 'moved.db'));
  expect((await worker.exited).code).toBe(1);
  expect(worker.output()).toMatch(/The database file \S+app\.db is (gone|another one) .* so it ends\./);
});
