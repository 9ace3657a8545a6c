import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';

const BYTE_ORDER_MARK = '\uFEFF';

/** What Node itself heeds: most of it at its start alone, so that it would be left out, by Node or a part of it. */
const IS_READ_BEFORE = /^(?:NODE_(?!ENV$)|(?:https?|no)_proxy$)/i;

/** A name, as shells and `parseEnv` take it; the blanks behind its sign, as `parseEnv` knows them, and the value. */
const VARIABLE = /^\s*(?:export\s+)?([\w.-]+)\s*=([ \t]*)(.*)/s;

/** White space that is no blank to `parseEnv`, as of text copied from a page. */
const STRANGE_BLANK = /^[^\S\r]/;

/** A first # that `parseEnv` takes for the begin of a comment, and people for a part of the value before it. */
const CUTS_OFF = /^[^#]*[^\s#]#/;

/** Blank lines, comments, and what npm writes first at `npm run keys >> .env`. */
const SETS_NOTHING = /^\s*(?:#|> |$)/;

/** Lines in which `parseEnv` looks in vain for a value of the name before them: to it, what npm writes is one. */
const BEGINS_NO_VALUE = /^[ \t\r\n]*(?:#|$)/;

/** What ends a line for some editors, and is left out by `parseEnv`, which joins what stands before and behind it. */
const HIDDEN_END = /\r[^\r]/;

/** What may stand behind a value in quotes. */
const END_OF_LINE = /^\s*(?:#|$)/;

const QUOTES = ['"', "'", '`'] as const;

/** A `.env` file that is there and cannot be used; the message says what to do. */
export class EnvFileError extends Error {
  constructor(path: string, problem: string) {
    super(`The file ${path} ${problem}`);
    this.name = 'EnvFileError';
  }
}

/**
 * Puts the variables of a `.env` file into the environment, if there is such a file; what is set already wins, unless it
 * is empty, which counts as unset. Entry points call it before they load the configuration.
 *
 * @param path of the file, from the current directory
 * @throws EnvFileError
 */
export function loadEnvFile(env: NodeJS.ProcessEnv, path = '.env'): void {
  const text = read(path);
  // Editors of Windows begin a file with a mark that would become a part of the first variable's name, which
  // would be missing without a word; and some write two bytes a character.
  if (text.includes('\0'))
    throw new EnvFileError(path, 'is not UTF-8 text: save it anew with that encoding.');
  const marked = text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  const variables = parseEnv(marked);
  const problem = findProblem(marked, variables);
  if (problem !== undefined) throw new EnvFileError(path, problem);
  for (const [name, value] of Object.entries(variables)) {
    if (value !== '' && IS_READ_BEFORE.test(name) && (env[name] ?? '') === '') {
      throw new EnvFileError(
        path,
        `sets ${name}, which Node reads before it: set it where the process is started, and take it out of the file.`,
      );
    }
    env[name] ||= value;
  }
}

/**
 * What `parseEnv` would pass over without a word: a line that sets nothing, and what stands behind the end that it sees of
 * a value.
 *
 * @param variables what it has found
 * @returns the end of a sentence, which names no value: it may be a secret
 */
function findProblem(text: string, variables: Readonly<Record<string, unknown>>): string | undefined {
  const lines = text.split('\n');
  const broken = lines.findIndex((line) => HIDDEN_END.test(line));
  if (broken !== -1) {
    return `has in line ${broken + 1} a carriage return (CR) without a line feed (LF), at which no line ends for Node: save the file anew with LF or CR LF at the end of each line.`;
  }
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    const where = `has in line ${at + 1} `;
    if (SETS_NOTHING.test(line)) continue;
    const [, name, gap = '', value = ''] = VARIABLE.exec(line) ?? [];
    if (name === undefined) {
      return `${where}neither NAME=value nor a comment, which begins with #: put it right, or take it out.`;
    }
    if (STRANGE_BLANK.test(value)) {
      return `${where}white space behind the = of ${name} that would be a part of its value, as a no-break space is: take it out; or put the value into quotes, if it belongs to it.`;
    }
    if (gap !== '' && value.trim() === '' && !BEGINS_NO_VALUE.test(lines.slice(at + 1).join('\n'))) {
      return `${where}blanks behind the = of ${name} and no value, for which Node would take the next line: take the blanks out.`;
    }
    if (!Object.hasOwn(variables, name)) {
      return `${where}a blank around the name ${name} that is none to Node: write ${name}=value, with nothing else before it.`;
    }
    const quote = QUOTES.find((mark) => value.startsWith(mark));
    if (quote === undefined) {
      if (CUTS_OFF.test(`=${gap}${value}`))
        return `${where}a # in the value of ${name}, behind which all would be cut off: put the value into quotes; or a space before the #, if a comment begins there.`;
      continue;
    }
    // A value in quotes may go on for lines.
    let rest = value.slice(1);
    for (; !rest.includes(quote); rest = lines[at] ?? '') {
      if (++at >= lines.length)
        return `${where}a value of ${name} that begins with ${quote} and does not end with it: put it right.`;
    }
    if (!END_OF_LINE.test(rest.slice(rest.indexOf(quote) + 1)))
      return `${where}more of ${name} behind the ${quote} that ends its value, which would be cut off: put all of it into quotes that it does not hold.`;
  }
  return undefined;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    if (error.code === 'ENOENT') return '';
    if (error.code === 'EISDIR')
      throw new EnvFileError(path, 'is a directory: remove it, or put the file there.');
    throw new EnvFileError(
      path,
      `cannot be read (${error.code}): let the user that the app runs as read it.`,
    );
  }
}
