import { type OAuthScope, SCOPE } from '../../contract/scopes.ts';

const SHARED =
  'contacts and accounts, conversations and their messages, shared inboxes, channels and tags, canned answers, teammates and reports';

/** What an application may do with a scope, in the words of the consent page: for people who administer, not develop. */
const WORDS: Record<OAuthScope, string> = {
  [SCOPE.shared]: `See and change what your teams share: ${SHARED}.`,
  [SCOPE.sharedRead]: `See what your teams share: ${SHARED}.`,
};

/** Out of reach of every application (Authentication, 9). */
const NEVER = [
  'Reach what is a teammate’s own: individual inboxes, tags and signatures.',
  'Reach your knowledge bases.',
];

/** What the scopes allow, each in words, and what stays out of reach. */
export function scopeWords(scopes: readonly OAuthScope[]) {
  return {
    allowed: scopes.map((scope) => ({ scope, words: WORDS[scope] })),
    denied: scopes.includes(SCOPE.shared) ? NEVER : ['Change anything.', ...NEVER],
  };
}
