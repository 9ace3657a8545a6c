import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** Where the generated page stands. */
export const PAGE = join(ROOT, 'docs/promises.md');

const INTRO = `# Promises

What the app guarantees. Each promise has a black-box test; \`npm run promises\` writes this page from their titles.

`;

/** The sections with their first and last promise. */
const SECTIONS: [string, number, number][] = [
  ['Install', 1, 8],
  ['Tokens', 9, 17],
  ['Secrets', 18, 21],
  ['Web', 22, 25],
  ['Sync', 26, 33],
  ['Handler', 34, 38],
  ['Operation', 39, 45],
];

/** Reads the promise of a test file: the title of its outermost `describe`. */
function readPromise(path: string): { number: number; row: string } {
  const title = /^describe\b[^'"`]*(['"`])(\d+)\. ((?:\\.|(?!\1)[^\\])*)\1/m.exec(readFileSync(path, 'utf8'));
  const [, , number = '', sentence = ''] = title ?? [];
  const file = basename(path);
  if (number === '' || !file.startsWith(`${number.padStart(2, '0')}-`))
    throw new Error(`${file}: no promise`);
  const text = sentence.replace(/\\(.)/g, '$1');
  const address = `../${relative(ROOT, path).replaceAll('\\', '/')}`;
  return { number: Number(number), row: `| ${number} | ${text} | [test](${address}) |\n` };
}

/** Writes the page anew, but for its hand-written end. */
export function promisesPage(page: string): string {
  const promises = globSync(join(ROOT, 'test/{acceptance,upgrade}/[0-9][0-9]-*.test.ts'))
    .map(readPromise)
    .sort((one, other) => one.number - other.number);
  const sections = SECTIONS.map(([title, first, last]) => {
    const rows = promises.filter(({ number }) => number >= first && number <= last).map(({ row }) => row);
    return rows.length === 0
      ? ''
      : `## ${title}\n\n| # | promise | test |\n|---|---|---|\n${rows.join('')}\n`;
  });
  return INTRO + sections.join('') + page.slice(page.indexOf('## Not defended'));
}

if (import.meta.main) writeFileSync(PAGE, promisesPage(readFileSync(PAGE, 'utf8')));
