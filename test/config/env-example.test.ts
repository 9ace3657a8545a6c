import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { VARIABLES } from '../../src/config/variables.ts';
import { tempDir } from '../support/temp-dir.ts';

const lines = readFileSync(join(import.meta.dirname, '../../.env.example'), 'utf8').split('\n');
const ours = lines.slice(
  0,
  lines.findIndex((line) => line.startsWith('# --- Yours')),
);
const entries = ours.flatMap((line) => {
  const [, name, value] = /^#?([A-Z][A-Z_]*)=(.*)$/.exec(line) ?? [];
  return name === undefined ? [] : [{ name, value: value ?? '' }];
});

it('documents every variable once, and no other', () => {
  expect(entries.map(({ name }) => name).sort()).toEqual(Object.keys(VARIABLES).sort());
});

it('changes nothing when it is copied as it is', () => {
  expect(lines.filter((line) => line !== '' && !line.startsWith('#'))).toEqual([]);
});

it('shows valid values, and no secret that somebody could keep', () => {
  for (const { name, value } of entries.filter((entry) => entry.value !== '')) {
    const { schema } = VARIABLES[name as keyof typeof VARIABLES];
    expect(schema.safeParse(value), name).toMatchObject({ success: true });
  }
  const empty = entries.filter(({ value }) => value === '').map(({ name }) => name);
  expect(empty.sort().join(' ')).toBe(
    'CLIENT_ID CLIENT_SECRET OPERATOR_PASSWORD SESSION_SECRET TOKEN_KEYS WORKER_PORT',
  );
});

it('shows the defaults of development where it shows a number', () => {
  const numbers = Object.fromEntries(
    entries.filter(({ value }) => /^\d+$/.test(value)).map(({ name, value }) => [name, value]),
  );
  const dataDir = tempDir();
  const { tokenKeys: _keys, sessionSecret: _secret, ...shown } = loadConfig(numbers, { dataDir });
  expect(loadConfig({}, { dataDir })).toMatchObject(shown);
});
