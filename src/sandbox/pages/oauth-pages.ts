import type { Answer } from '../http/answer.ts';
import type { AuthorizationRequest } from '../oauth/authorize.ts';
import type { World } from '../world.ts';
import { renderPage } from './render.ts';
import { scopeWords } from './scope-words.ts';

/**
 * The consent page: which application asks for what (Authentication, 9), and who answers. There is no sign-in here, so it shows the teammates of
 * every company to choose from.
 *
 * @param message what was wrong with the form that came in (status 400); none at first
 */
export function consentPage(world: World, request: AuthorizationRequest, message = ''): Answer {
  const { application, redirectUri } = request;
  const data = {
    application: application.name,
    clientId: application.clientId,
    ...scopeWords(application.scopes),
    anyone: application.kind === 'tool-protocol',
    returnsTo: redirectUri,
    companies: world.companies.all(),
    message,
  };
  return renderPage('consent.eta', data, message === '' ? 200 : 400);
}

/** The page for an authorization request that may lead nowhere: nobody knows whose it is (RFC 6749, 4.1.2.1). */
export function refusedPage(problem: string): Answer {
  return renderPage('refused.eta', { problem }, 400);
}
