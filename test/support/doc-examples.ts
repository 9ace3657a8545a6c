import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const BLOCK = /^```(?:ts|html)\n(?:\/\/|<!--) ((?:src|test)\/integration\/\S+)(?: -->)?\n([\s\S]*?)^```$/gm;

/** A file of a fork, as a page shows it. */
export interface Example {
  page: string;
  path: string;
  code: string;
}

/** The pages that show files of a fork. */
export const PAGES = ['README.md', 'docs/handler.md', 'docs/resources.md', 'docs/upgrade.md'];

export const EXAMPLES = PAGES.flatMap((page) => {
  const blocks = readFileSync(join(ROOT, page), 'utf8').matchAll(BLOCK);
  return [...blocks].map(([, path = '', code = '']): Example => ({ page, path, code }));
});
