/**
 * Reads what follows a command. What it does not know ends the process with a plain sentence: whoever asked for a rehearsal,
 * or for another port, is not to be given the real thing.
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
