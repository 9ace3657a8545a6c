import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const PAGES = globSync(['*.md', 'docs/*.md', '.github/*.md'], { cwd: ROOT });

/** The anchors that a page's headings get where it is shown: lower case, without marks, with dashes for spaces. */
function anchorsOf(page: string): string[] {
  return [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

test('every link from a page of the documentation leads to a file, and a heading, that is there', () => {
  const dead: string[] = [];
  for (const page of PAGES) {
    const text = readFileSync(join(ROOT, page), 'utf8');
    for (const [, target = ''] of text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? join(ROOT, page) : join(ROOT, dirname(page), path);
      const there =
        existsSync(file) && (anchor === undefined || anchorsOf(readFileSync(file, 'utf8')).includes(anchor));
      if (!there) dead.push(`${page}: ${relative(ROOT, file)} ${anchor ?? ''}`);
    }
  }
  expect(dead).toEqual([]);
});
