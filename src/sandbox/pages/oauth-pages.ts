import { type OAuthScope, SCOPE } from '../../contract/scopes.ts';
import type { Answer } from '../http/answer.ts';
import type { AuthorizationRequest } from '../oauth/authorize.ts';
import type { World } from '../world.ts';
import { renderPage } from './render.ts';

const SHARED =
  'contacts and accounts, conversations and their messages, shared inboxes, channels and tags, canned answers, teammates and reports';

/** What a scope allows, in the words of the consent page. */
const SCOPE_WORDS: Record<OAuthScope, string> = {
  [SCOPE.shared]: `See and change what your teams share: ${SHARED}.`,
  [SCOPE.sharedRead]: `See what your teams share: ${SHARED}.`,
};

/** No application reaches these (Authentication, 9). */
const NEVER = [
  'Reach what is a teammate’s own: individual inboxes, tags and signatures.',
  'Reach your knowledge bases.',
];

/**
 * The consent page: which application asks for what (Authentication, 9), and who answers. There is no sign-in here, so
 * it shows the teammates of every company to choose from.
 *
 * @param message what was wrong with the form that came in (status 400); none at first
 */
export function consentPage(world: World, request: AuthorizationRequest, message = ''): Answer {
  const { application, redirectUri } = request;
  const data = {
    application,
    allowed: application.scopes.map((scope) => ({ scope, words: SCOPE_WORDS[scope] })),
    denied: application.scopes.includes(SCOPE.shared) ? NEVER : ['Change anything.', ...NEVER],
    anyone: application.kind === 'tool-protocol',
    returnsTo: redirectUri,
    companies: world.companies.all(),
    message,
  };
  return renderPage('consent.eta', data, message === '' ? 200 : 400);
}

/**
 * The page for a request that names no known client or redirect address: the sandbox must not redirect (RFC 6749,
 * 4.1.2.1).
 */
export function refusedPage(problem: string): Answer {
  return renderPage('refused.eta', { problem }, 400);
}
