import type { ConfigProblem } from './config-error.ts';
import { type GivenValues, VARIABLES, type VariableName } from './variables.ts';

const MAX_SHOWN_CHARACTERS = 60;

/** Container tools leave the quotes of an env file around its values (docker run --env-file). */
const IN_QUOTES = /^(["']).*\1$/s;

/**
 * Reads every known variable on its own. An empty value counts as unset.
 *
 * @returns the values that could be read, and what is wrong with the others
 */
export function readVariables(env: NodeJS.ProcessEnv): { given: GivenValues; problems: ConfigProblem[] } {
  const problems: ConfigProblem[] = [];
  const read = <Name extends VariableName>(name: Name): [Name, GivenValues[Name]] => {
    const text = env[name];
    if (text === undefined || text === '') return [name, undefined];
    const { schema, example, shown } = VARIABLES[name];
    if (IN_QUOTES.test(text)) {
      const problem = 'stands in quotes, which are no part of the value: remove the quotes';
      problems.push({ variable: name, problem, example });
      return [name, undefined];
    }
    const result = schema.safeParse(text);
    if (result.success) return [name, result.data as GivenValues[Name]];
    const got = shown === true ? ` (it is "${text.slice(0, MAX_SHOWN_CHARACTERS)}")` : '';
    const problem = [...new Set(result.error.issues.map(({ message }) => message))].join('; ');
    problems.push({ variable: name, problem: `${problem}${got}`, example });
    return [name, undefined];
  };
  const names = Object.keys(VARIABLES) as VariableName[];
  return { given: Object.fromEntries(names.map(read)) as GivenValues, problems };
}
