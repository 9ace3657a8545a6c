import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { EXAMPLES, type Example, PAGES } from './support/doc-examples.ts';
import { tempDir } from './support/temp-dir.ts';

const ROOT = join(import.meta.dirname, '..');
const PARTS = [
  'src',
  'jobs',
  'test',
  'views',
  'package.json',
  'tsconfig.json',
  'biome.json',
  'vitest.config.ts',
];
const HANDLER = 'src/integration/handler.ts';

const HANDLERS = EXAMPLES.filter(({ path }) => path === HANDLER);

/** Tests of handlers that the pages show without a test of their own, by a part of the handler's code. */
const TESTS: Record<string, string> = {
  replyToConversation: `
  const conversations = [{ id: 'cnv_1', subject: 'Refund, please', recipient: { handle: 'ada@example.com' } }];
  const { sync, sandbox } = await startHandlerTest(onChanges ?? expect.fail(), { conversations }, { settings });
  await sync();
  expect(await sync()).toMatchObject([{ change: 'changed', id: 'cnv_1' }]);
  const replies = sandbox.requests().filter(({ path }) => path === '/conversations/cnv_1/messages');
  expect(replies.map(({ method, status }) => [method, status])).toEqual([['POST', 201]]);`,
  listConversationMessages: `
  const { sync, db } = await startHandlerTest(onChanges ?? expect.fail(), { conversations: 2 }, { settings });
  await sync();
  const rows = await db.selectFrom('messages').selectAll().execute();
  expect(new Set(rows.map((row) => row.conversation_id)).size).toBe(2);
  expect(rows.every(({ text }) => text !== '')).toBe(true);`,
};

const run = promisify(execFile);

describe('a fork with the examples of README and docs', () => {
  const fork = tempDir();
  const write = ({ path, code }: Pick<Example, 'path' | 'code'>) => {
    mkdirSync(dirname(join(fork, path)), { recursive: true });
    writeFileSync(join(fork, path), code);
  };
  /** Runs a tool of the project in the fork. @returns what it printed, if it failed */
  const tool = async (name: string, ...args: string[]) => {
    const options = { cwd: fork, env: { ...process.env, NO_COLOR: '1' } };
    const failed = run(join(ROOT, 'node_modules/.bin', name), args, options).then(
      () => '',
      ({ stdout, stderr }) => `${stdout}${stderr}`,
    );
    return failed;
  };

  beforeAll(() => {
    symlinkSync(join(ROOT, 'node_modules'), join(fork, 'node_modules'));
    for (const part of PARTS) cpSync(join(ROOT, part), join(fork, part), { recursive: true });
    // Not what is this fork's own: it may not fit the examples.
    for (const own of ['src/integration', 'test/integration']) rmSync(join(fork, own), { recursive: true });
    for (const file of ['types.ts', 'app-info.ts']) {
      cpSync(join(ROOT, 'src/integration', file), join(fork, 'src/integration', file));
    }
    for (const example of EXAMPLES.toReversed()) write(example);
  });

  test('has examples of every page, and of every kind of file', () => {
    expect(new Set(EXAMPLES.map(({ page }) => page)).size).toBe(PAGES.length);
    const files = new Set(EXAMPLES.map(({ path }) => basename(path)));
    expect([...files].sort()).toEqual([
      ...['0001-messages.ts', 'events.ts', 'handler.test.ts', 'handler.ts', 'landing.eta', 'resources.ts'],
      ...['schema.ts', 'settings.ts'],
    ]);
    expect(HANDLERS.length).toBeGreaterThanOrEqual(4);
  });

  test('compiles and is formatted', async () => {
    for (const [at, { code }] of HANDLERS.entries())
      write({ path: HANDLER.replace('.ts', `-${at}.ts`), code });
    expect(await tool('tsc', '--noEmit')).toBe('');
    const own = ['src/integration', 'test/integration'];
    expect(await tool('biome', 'check', '--vcs-enabled=false', '--error-on-warnings', ...own)).toBe('');
  });

  test.each(HANDLERS.filter(({ page }) => page !== 'README.md'))('runs its tests: %#', async ({ code }) => {
    write({ path: HANDLER, code });
    const [, body] = Object.entries(TESTS).find(([part]) => code.includes(part)) ?? [];
    // The handler with settings has its test on the page.
    const shown = EXAMPLES.find(({ path }) => path === 'test/integration/handler.test.ts') ?? expect.fail();
    const own = `import { expect, test } from 'vitest';
import { onChanges } from '../../src/integration/handler.ts';
import { startHandlerTest } from '../support/handler-test.ts';
const settings = { CRM_URL: 'http://127.0.0.1:1', CRM_KEY: 'for-tests' };
test('the handler works', async () => {${body}
});`;
    write({ ...shown, code: body === undefined ? shown.code : own });
    expect(await tool('vitest', 'run', '--mode', 'quick', 'test/integration')).toBe('');
  });
});
