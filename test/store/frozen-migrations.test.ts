import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const FOLDER = join(import.meta.dirname, '../../src/store/migrations');

/** Databases have run these. A new migration gets its line here when its version is released. */
const RELEASED: Record<string, string> = {
  '0001-initial.ts': '8d0d2fc943a29357',
  '0002-checks.ts': 'f9be19bca911d626',
  '0003-delivery-process.ts': 'eaff4e9af2b85ac9',
  '0004-outbox.ts': 'b8aa0b65effd729e',
  '0005-many-companies.ts': '2c93408938a1e6a9',
  '0006-erased-stay-away.ts': '4f5f3bf15e8247a7',
  '0007-days.ts': 'aa3f6066f1e2d8d7',
  '0008-since.ts': '24c41d02be5ea393',
};

test('a migration that was released is never changed', () => {
  const files = readdirSync(FOLDER).filter((file) => file in RELEASED);
  const sums = files.map((file) => {
    const text = readFileSync(join(FOLDER, file), 'utf8').replaceAll('\r\n', '\n');
    return [file, createHash('sha256').update(text).digest('hex').slice(0, 16)];
  });
  expect(Object.fromEntries(sums)).toEqual(RELEASED);
});
