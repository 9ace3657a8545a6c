import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { APP_INFO } from '../../src/integration/app-info.ts';

test('the colour of src/integration/app-info.ts is #rrggbb', () => {
  expect(APP_INFO.colour).toMatch(/^#[0-9a-f]{6}$/i);
});

test('package.json has the name and the description of src/integration/app-info.ts', () => {
  const { name, description } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  expect({ name, description }).toEqual({
    name: APP_INFO.name
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-|-$/g, ''),
    description: APP_INFO.description,
  });
});
