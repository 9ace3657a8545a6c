/** One wrong or missing variable of the environment. */
export interface ConfigProblem {
  /** Name of the environment variable. */
  variable: string;
  /** What is wrong, as the end of a sentence that starts with the name; never holds a secret. */
  problem: string;
  /** A value that would do. */
  example: string;
}

/** The configuration cannot be used; the message lists every problem, one a line, ready to print. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    const lines = problems.map(
      ({ variable, problem, example }) => `  ${variable} ${problem}\n      example: ${variable}=${example}`,
    );
    const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
    super(`The configuration has ${count} (.env.example explains every variable):\n${lines.join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}
