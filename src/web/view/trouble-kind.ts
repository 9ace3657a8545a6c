/**
 * Whose an error is that a run has noted, as its text tells:
 * - `own logic`: the integrator's function threw (src/sync/own-logic-call.ts)
 * - `at work`: none: the integrator's function takes long (src/sync/own-logic-parking.ts)
 * - `app`: database or Redis, or a mistake of ours (src/client/errors.ts)
 * - `credentials`: the service refuses CLIENT_ID and CLIENT_SECRET (src/auth/tokens.ts)
 * - `forbidden`: the service does not let the app read the list (403)
 * - `refused`: the service refused for another reason that does not pass (src/client/refusal.ts)
 * - `not renewed`: the token route refuses a refresh, and does not say that the grant is over (src/auth/tokens.ts)
 * - `service`: anything else, which is the service's, and passes
 */
export type TroubleKind =
  | 'own logic'
  | 'at work'
  | 'app'
  | 'credentials'
  | 'forbidden'
  | 'refused'
  | 'not renewed'
  | 'service';

const KINDS: readonly [RegExp, TroubleKind][] = [
  [/^The app['’]s own logic failed/, 'own logic'],
  [/^The app['’]s own logic has been at work/, 'at work'],
  [/^The app itself had trouble|^The tokens are encrypted with the key /, 'app'],
  [/^The service does not accept CLIENT_ID and CLIENT_SECRET\b/, 'credentials'],
  [/^The service refused the request \(403\b/, 'forbidden'],
  [/^The service refuses to renew the app['’]s access/, 'not renewed'],
  [/^The service (?:refused the request|answered with a redirect)/, 'refused'],
];

/** Says whose an error is. */
export function troubleKind(error: string | null): TroubleKind {
  return KINDS.find(([begins]) => begins.test(error ?? ''))?.[1] ?? 'service';
}
