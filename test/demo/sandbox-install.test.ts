import { expect, test } from 'vitest';
import { SandboxControl } from '../acceptance/support/sandbox-control.ts';
import { findFreePort } from '../support/free-port.ts';
import { spawnEntry } from '../support/spawn-entry.ts';

const [PORT, SANDBOX_PORT] = [String(await findFreePort()), String(await findFreePort())];
const ENV = { PORT, SANDBOX_PORT, OPERATOR_PASSWORD: 'a password of the test' };
const [APP, SANDBOX] = [`http://localhost:${PORT}`, `http://127.0.0.1:${SANDBOX_PORT}`];

const app = spawnEntry('src/start.ts', ENV);
await app.waitForOutput(/click Install/);
const control = new SandboxControl(SANDBOX);
const acme = await control.addCompany({ name: 'Acme', contacts: 1, conversations: 0 });
const administrators = acme.teammates.filter(({ is_admin }) => is_admin);
const other = acme.teammates.find(({ is_admin }) => !is_admin) ?? expect.unreachable();

async function install(args: string[], env: Record<string, string> = {}) {
  const command = spawnEntry('src/sandbox-install.ts', { ...ENV, ...env }, { args });
  const { code } = await command.exited;
  return { code, output: command.output() };
}

test.each([
  ['ACME', undefined],
  [acme.id, administrators.at(-1)?.name.toUpperCase()],
  ['acme', administrators[0]?.id],
])('a company is installed by its id or name, by an administrator: %s %s', async (company, admin) => {
  const { code, output } = await install(admin === undefined ? [company] : [company, admin]);
  const [, id = '', address = ''] = /^(ins_\w+) (\S+)\n$/.exec(output) ?? [];
  expect([code, output]).toEqual([0, `${id} ${APP}/instances/${id}\n`]);
  const authorization = `Basic ${btoa(`operator:${ENV.OPERATOR_PASSWORD}`)}`;
  const status = await fetch(`${address}/status`, { headers: { authorization } });
  expect(await status.json()).toMatchObject({ id, company_id: acme.id, name: 'Acme', status: 'active' });
});

test('the app’s own refusal of others is told', async () => {
  const reason = 'An administrator is needed. The service lets only administrators authorize an app.';
  const output = `Acme could not be installed: ${reason}\n`;
  expect(await install(['Acme', other.id])).toEqual({ code: 1, output });
});

test('an unknown or ambiguous name is answered with a list to choose from', async () => {
  const unknown = await install(['Nobody']);
  expect(unknown).toEqual({ code: 1, output: expect.stringContaining('No company is called "Nobody".') });
  expect(unknown.output).toContain(`\n  ${acme.id}  Acme\n`);
  const twin = await control.addCompany({ name: 'ACME' });
  const ambiguous = await install(['Acme']);
  expect(ambiguous).toEqual({ code: 1, output: expect.stringContaining('More than one company is called') });
  expect(ambiguous.output).toContain(`\n  ${twin.id}  ACME\n`);
  const teammate = await install([acme.id, 'Nobody']);
  expect(teammate).toEqual({ code: 1, output: expect.stringContaining('No teammate of Acme is called') });
  expect(teammate.output).toContain(`\n  ${other.id}  ${other.name}\n`);
  expect(teammate.output).toContain(`  ${administrators[0]?.name} (administrator)\n`);
});

test.each<[string[], Record<string, string>, number, string]>([
  [[], {}, 2, 'npm run sandbox:install -- COMPANY [ADMIN]'],
  [['Acme', 'Ada', 'Bob'], {}, 2, '"Bob" is one argument too many.'],
  [['Acme'], { SERVICE_API_URL: 'https://api.example.com' }, 1, 'The app uses no sandbox'],
  [['Acme'], { PORT: 'x' }, 1, 'PORT must be a whole number'],
  [['Acme'], { PORT: '1' }, 1, 'The app at http://localhost:1 does not answer. Start both with npm start'],
  [['Acme'], { SANDBOX_PORT: '1' }, 1, 'The sandbox at http://127.0.0.1:1 does not answer. Start both'],
])('%j with %j ends with a reason', async (args, env, code, reason) => {
  expect(await install(args, env)).toEqual({ code, output: expect.stringContaining(reason) });
});

test('an app that installs at another service is left alone', async () => {
  const port = String(await findFreePort());
  const second = spawnEntry('src/start.ts', {
    ...ENV,
    PORT: port,
    SANDBOX_PORT: String(await findFreePort()),
  });
  await second.waitForOutput(/click Install/);
  const { code, output } = await install([acme.id], { PORT: port });
  expect([code, output]).toEqual([1, expect.stringMatching(/^The app installs at .+, not at .+\.\n$/)]);
  await second.stop();
});
