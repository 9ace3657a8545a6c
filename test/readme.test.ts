import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

test('the README’s example of calling the service is the code that a flow test runs', () => {
  const code = read('test/flows/own-logic-example.ts')
    .replace('../../src/sync/own-logic.ts', './own-logic.ts')
    .replace(/^\/\/.*\n/m, '');
  expect(code).toContain('service.addConversationTags');
  expect(read('README.md')).toContain(`\`\`\`ts\n${code}\`\`\``);
});

test('the README names no script that there is not', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const named = [...read('README.md').matchAll(/`npm run ([\w:]+)/g)].map(([, name]) => name);
  expect(named).toContain('sandbox');
  expect(named.filter((name) => name === undefined || !(name in scripts))).toEqual([]);
});
