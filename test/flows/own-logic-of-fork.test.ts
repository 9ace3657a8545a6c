import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { install } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestApp } from '../support/test-app.ts';
import { copyApp } from '../trust/next-version.ts';

/** Has something around the function, and tells what it is told. */
const TELLING = `const CRM_URL = process.env.CRM_URL;
process.stdout.write(\`the CRM is at \${CRM_URL}\\n\`);
export const onRecords: OwnLogic = async ({ resource }) => {
  process.stdout.write(\`told of \${resource}\\n\`);
};
`;

/** A fork with own logic. */
function makeFork(ownLogic = TELLING): string {
  const root = copyApp();
  const path = join(root, 'src/sync/own-logic.ts');
  writeFileSync(
    path,
    readFileSync(path, 'utf8').replace(/^export const onRecords[\s\S]*/m, () => ownLogic),
  );
  return root;
}

test('own logic finds what the .env file sets, also outside of its function, and is told of what is synced', async () => {
  const { env, control, session } = await startTestApp({ workers: false });
  const company = await control.addCompany({ name: 'Acme', plan: 'starter', contacts: 1, conversations: 1 });
  await install(session(), company);
  const cwd = tempDir();
  writeFileSync(join(cwd, '.env'), 'CRM_URL=https://crm.example\n');
  const worker = spawnEntry('src/worker.ts', env, { root: makeFork(), cwd, hasOwnLogic: true });
  await worker.waitForOutput(/the CRM is at https:\/\/crm\.example/);
  await worker.waitForOutput(/told of contacts/);
  await worker.waitForOutput(/told of conversations/);
  expect(await worker.stop()).toEqual({ code: 0, signal: null });
});

test('the demo tells own logic nothing of the records that it makes up', async () => {
  const demo = spawnEntry('src/demo.ts', {}, { root: makeFork(), hasOwnLogic: true });
  await demo.waitForOutput(/nothing is missing, nothing is double/);
  expect(await demo.exited).toEqual({ code: 0, signal: null });
  expect(demo.output()).not.toMatch(/the CRM is at|told of/);
});

test('nor do processes that tests start', async () => {
  const worker = spawnEntry('src/worker.ts', {}, { root: makeFork() });
  // Killed, it would leave its private Redis running.
  await worker.waitForOutput(/the workers run/);
  expect(worker.output()).not.toMatch(/the CRM is at/);
  expect(await worker.stop()).toEqual({ code: 0, signal: null });
});

test.each([
  ['a slip', 'const ready = 1;\nif (ready {\n', [/own-logic\.ts:\d+\n.*\nif \(ready \{\n/, /Expected '\)'/]],
  ['an error at its top', "throw new Error('no CRM');\n", [/no CRM/, /own-logic\.ts:\d+/]],
  ['a file that is not there', "import './crm.ts';\n", [/crm\.ts' imported from \S+own-logic\.ts/]],
  [
    'another name',
    'export const onRecord: OwnLogic = async () => undefined;\n',
    [/exports no function onRecords/],
  ],
  [
    'what is no function',
    'export const onRecords = { contacts: () => {} };\n',
    [/exports no function onRecords/],
  ],
  ['a class', 'export class onRecords {}\n', [/exports no function onRecords/]],
])('own logic with %s ends the start, which says where it is', async (_what, ownLogic, said) => {
  const worker = spawnEntry('src/worker.ts', {}, { root: makeFork(ownLogic), hasOwnLogic: true });
  expect(await worker.exited).toEqual({ code: 1, signal: null });
  for (const words of [/Your own logic, src\/sync\/own-logic\.ts/, ...said])
    expect(worker.output()).toMatch(words);
});
