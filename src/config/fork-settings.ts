import { z } from 'zod';
import type { Settings } from '../integration/types.ts';
import { blankSecrets, hasSecretName, hideSecrets } from '../runtime/redaction.ts';
import { type ConfigProblem, IN_QUOTES, VARIABLES } from './variables.ts';

const FILE = 'src/integration/settings.ts';

/** The fork's settings. With a problem, they are empty. */
interface ForkSettings {
  settings: Settings;
  /** Of its variables. */
  names: string[];
  problems: ConfigProblem[];
}

/** Of a process without handler and events. */
export const NO_SETTINGS: ForkSettings = { settings: {} as Settings, names: [], problems: [] };

/**
 * Reads the fork's own variables. An empty value counts as unset. From then on, logs and messages blank its secrets.
 *
 * @param load imports `src/integration/settings.ts`
 * @param env after `readEnvironment`
 */
export async function readSettings(
  load: () => Promise<unknown>,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<ForkSettings> {
  const without = (problems: ConfigProblem[]) => ({ ...NO_SETTINGS, problems });
  let module: unknown;
  try {
    module = await load();
  } catch (error) {
    const reason = error instanceof Error ? error.stack : String(error);
    return without([{ variable: FILE, problem: `cannot be used:\n\n${blankSecrets(String(reason))}\n` }]);
  }
  const { SETTINGS } = module as { SETTINGS?: unknown };
  if (!(SETTINGS instanceof z.ZodObject)) {
    return without([{ variable: FILE, problem: 'must export SETTINGS, made with z.object' }]);
  }
  const names = Object.keys(SETTINGS.shape);
  const given = Object.fromEntries(names.flatMap((name) => (env[name] ? [[name, env[name]]] : [])));
  const secrets = names.filter((name) => isSecret(name, SETTINGS.shape[name]));
  hideSecrets(secrets, given);
  try {
    const { data, error } = await SETTINGS.safeParseAsync(given);
    // Defaults, and the parts of a list.
    hideSecrets(secrets, data);
    const problems = problemsOf(SETTINGS.shape, env, error?.issues ?? []);
    return problems.length > 0 ? without(problems) : { settings: data as Settings, names, problems };
  } catch (error) {
    // Its message may quote a part of a secret.
    const name = error instanceof Error ? error.name : typeof error;
    const what = `has a transform or a check that throws (${name}). Report problems with ctx.addIssue`;
    return without([{ variable: FILE, problem: what }]);
  }
}

/** One problem for each variable, with all that is wrong with it. */
function problemsOf(
  shape: z.ZodRawShape,
  env: Readonly<Record<string, string | undefined>>,
  issues: readonly z.core.$ZodIssue[],
): ConfigProblem[] {
  const problemOf = (name: string): string | undefined => {
    if (Object.hasOwn(VARIABLES, name)) return `is a variable of the app: choose another name in ${FILE}`;
    if (IN_QUOTES.test(env[name] ?? '')) return 'has quotes around its value: remove the quotes';
    const own = issues.filter(({ path }) => path[0] === name);
    if (own.length === 0) return undefined;
    if (!env[name] && own.every(({ code }) => code !== 'custom')) return `is not set, and ${FILE} needs it`;
    const messages = own.map(({ message }) => blankSecrets(message));
    // zod's own messages begin with a capital letter; others may continue the sentence.
    return messages.map((text) => (/^[A-Z]/.test(text) ? `is wrong: ${text}` : text)).join('; ');
  };
  const ofAll = issues.filter(({ path }) => path.length === 0);
  return [
    ...Object.entries(shape).flatMap(([variable, schema]) => {
      const problem = problemOf(variable);
      const example = findMeta(schema, 'examples');
      const shown = Array.isArray(example) ? { example: String(example[0]) } : {};
      return problem === undefined ? [] : [{ variable, problem, ...shown }];
    }),
    ...ofAll.map(({ message }) => ({
      variable: FILE,
      problem: `refuses the values: ${blankSecrets(message)}`,
    })),
  ];
}

function isSecret(name: string, schema: unknown): boolean {
  return Boolean(findMeta(schema, 'secret') ?? (hasSecretName(name) || /KEY$/.test(name)));
}

/** Looks into `.optional()`, `.default()` and `.transform()`, which have no metadata of what they wrap. */
function findMeta(schema: unknown, name: 'secret' | 'examples'): unknown {
  if (!(schema instanceof z.ZodType)) return undefined;
  const { innerType, in: input, out } = schema.def as { innerType?: unknown; in?: unknown; out?: unknown };
  return schema.meta()?.[name] ?? findMeta(innerType ?? input, name) ?? findMeta(out, name);
}
