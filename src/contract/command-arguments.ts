/**
 * Reads the arguments of a command. An unknown one ends the process with a plain sentence: a person who asks for a
 * rehearsal, or for another port, must not get the real thing.
 *
 * @param usage what it takes, as a sentence
 * @param known all that it takes; nothing by default
 * @returns those of the known that were given
 */
export function commandArguments(
  usage = 'This command takes no arguments: its settings are variables, see .env.example.',
  known: readonly string[] = [],
): ReadonlySet<string> {
  const given = process.argv.slice(2);
  const unknown = given.filter((argument) => !known.includes(argument));
  if (unknown.length > 0) {
    process.stderr.write(`${unknown.join(' ')} is not understood, and nothing was done. ${usage}\n`);
    process.exit(2);
  }
  return new Set(given);
}
