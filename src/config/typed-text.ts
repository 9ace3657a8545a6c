/** Shares of letters in English, in percent, from a to z. */
const LETTERS = [
  8.2, 1.5, 2.8, 4.3, 12.7, 2.2, 2, 6.1, 7, 0.2, 0.8, 4, 2.4, 6.7, 7.5, 1.9, 0.1, 6, 6.3, 9.1, 2.5, 1, 2.4,
  0.2, 2, 0.1,
];

type Kind = 'lower' | 'upper' | 'digit' | 'sign';

/** In words that somebody types, what follows what how often; what comes first counts as following a sign. */
const FOLLOWS: Record<Kind, Record<Kind, number>> = {
  lower: { lower: 0.8, upper: 0.12, digit: 0.04, sign: 0.04 },
  upper: { lower: 0.75, upper: 0.2, digit: 0.03, sign: 0.02 },
  digit: { lower: 0.15, upper: 0.2, digit: 0.55, sign: 0.1 },
  sign: { lower: 0.45, upper: 0.35, digit: 0.15, sign: 0.05 },
};

/** Each is as likely as any other by chance. */
const BASE64_CHARACTERS = 64;

/** As many times likelier a text has to be as typed words than as chance. */
const LIKELIER = 1e7;

/**
 * Whether a text in Base64 reads as words that somebody has typed, rather than as chance: it compares how likely either
 * brings it about. No more random texts than one in {@link LIKELIER} can be that much likelier as words, or the words of
 * all texts together would be more than all that is typed; and as many again with large letters for small ones.
 *
 * @param text of letters, digits, `+` and `/` alone
 */
export function readsAsWords(text: string): boolean {
  const swapped = text.replace(/[a-z]+|[A-Z]+/g, (run) =>
    run < 'a' ? run.toLowerCase() : run.toUpperCase(),
  );
  return oddsOfWords(text) > LIKELIER || oddsOfWords(swapped) > LIKELIER;
}

/** How many times likelier a text is as typed words than as chance. */
function oddsOfWords(text: string): number {
  let before: Kind = 'sign';
  let odds = 1;
  for (const character of text) {
    const kind = kindOf(character);
    odds *= FOLLOWS[before][kind] * shareOf(character, kind) * BASE64_CHARACTERS;
    before = kind;
  }
  return odds;
}

function kindOf(character: string): Kind {
  if (/[a-z]/.test(character)) return 'lower';
  if (/[A-Z]/.test(character)) return 'upper';
  return /\d/.test(character) ? 'digit' : 'sign';
}

/** How often it is this one among those of its kind, from 0 to 1. */
function shareOf(character: string, kind: Kind): number {
  if (kind === 'digit') return 1 / 10;
  if (kind === 'sign') return 1 / 2;
  return (LETTERS[character.toLowerCase().charCodeAt(0) - 'a'.charCodeAt(0)] ?? 0) / 100;
}
