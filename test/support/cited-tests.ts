import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** What a title may come out as: the parts that a table of cases fills in may be anything. */
function titlePattern(title: string): RegExp {
  const literal = title.replaceAll(/\\(['"`\\])/g, '$1').replaceAll(/[.*+?^()|[\]\\{}]/g, '\\$&');
  return new RegExp(`^${literal.replaceAll(/%[sdifjo#$]|\$(?:\\\{[^}]*\\\}|[\w.]+)/g, '.*')}$`);
}

/**
 * Whether a file has a test with this title: texts that come first in a call, before a function.
 *
 * @param file its path from the root
 */
export function hasTest(file: string, wanted: string): boolean {
  const source = existsSync(join(ROOT, file)) ? readFileSync(join(ROOT, file), 'utf8') : '';
  const titles = source.matchAll(
    /\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1,\s*(?:\{[^}]*\},\s*)?(?:async\s*)?(?:\(|\w+ =>|function)/g,
  );
  return [...titles].some(([, , title = '']) =>
    // A title that comes out of a table as a whole must stand there.
    /^\$\w+$|^%s$/.test(title) ? source.includes(`'${wanted}'`) : titlePattern(title).test(wanted),
  );
}
