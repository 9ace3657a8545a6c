import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { VIEWS_DIRECTORY } from '../../src/web/render.ts';

const templates = readdirSync(VIEWS_DIRECTORY, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.eta'))
  .map((name) => ({ name, text: readFileSync(join(VIEWS_DIRECTORY, name), 'utf8') }));

describe.each(templates)('$name', ({ text }) => {
  it('prints nothing unescaped but other templates', () => {
    const raw = [...text.matchAll(/<%[-_]?\s*~([^%]*)%>/g)].map(([, code = '']) => code.trim());
    for (const code of raw) expect(code).toMatch(/^(it\.body|include\('\/partials\/[\w-]+'(, \{ .+ \})?\))$/);
  });

  it('has no script, style or handler that the content security policy would refuse', () => {
    expect(text).not.toMatch(/<style|\sstyle=|\son\w+=|javascript:/i);
    for (const [tag] of text.matchAll(/<script[^>]*>/g)) expect(tag).toContain('src="/assets/');
  });
});

it('finds the templates', () => {
  expect(templates.length).toBeGreaterThan(7);
});
