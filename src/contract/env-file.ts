import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';

const BYTE_ORDER_MARK = '\uFEFF';

/** What Node itself heeds: most of it at its start alone, so that it would be left out, by Node or a part of it. */
const IS_READ_BEFORE = /^(?:NODE_(?!ENV$)|(?:https?|no)_proxy$)/i;

/** A `.env` file that is there and cannot be used; the message says what to do. */
export class EnvFileError extends Error {
  constructor(path: string, problem: string) {
    super(`The file ${path} ${problem}`);
    this.name = 'EnvFileError';
  }
}

/**
 * Puts the variables of a `.env` file into the environment, if there is such a file; what is set already wins.
 * Entry points call it before they load the configuration.
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
  const variables = parseEnv(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text);
  for (const [name, value] of Object.entries(variables)) {
    if (value !== '' && IS_READ_BEFORE.test(name) && env[name] === undefined) {
      throw new EnvFileError(
        path,
        `sets ${name}, which Node reads before it: set it where the process is started, and take it out of the file.`,
      );
    }
    env[name] ??= value;
  }
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
