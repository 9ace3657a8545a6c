import { type Answer, clipped, orProblem, Problem } from '../http/answer.ts';
import { type Call, ignoredParts } from '../http/call.ts';
import type { Prepared } from '../http/exchange.ts';
import { consentPage, refusedPage } from '../pages/oauth-pages.ts';
import type { Applications } from '../state/applications.ts';
import type { Application } from '../types.ts';
import type { World } from '../world.ts';
import { formParameters, type Parameters } from './parameters.ts';

/** Query parameters of an authorization request (Endpoints, "OAuth routes"). */
const QUERY = ['response_type', 'client_id', 'redirect_uri', 'state'];
const BODY_MAX_BYTES = 16 * 1024;

/** What an application hears at its own address in place of a code. */
interface Refusal {
  error: string;
  error_description: string;
}

/** An authorization request of a registered application to one of its own addresses. */
export interface AuthorizationRequest {
  application: Application;
  redirectUri: string;
  /** Undefined when the request carries none. */
  state: string | undefined;
  wrong: Refusal | undefined;
}

function one(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  return values.length === 1 ? values[0] : undefined;
}

function wrongWith(query: URLSearchParams): Refusal | undefined {
  if (query.getAll('state').length > 1) {
    return { error: 'invalid_request', error_description: 'state is given more than once.' };
  }
  const type = one(query, 'response_type');
  if (type === undefined) {
    return { error: 'invalid_request', error_description: 'The request must name one response_type.' };
  }
  if (type === 'code') return undefined;
  return { error: 'unsupported_response_type', error_description: 'response_type must be code.' };
}

/**
 * Checks the query of an authorize request (OAuth routes, "Authorize request query parameters"). Throws a {@link Problem}
 * for one that must not lead anywhere: its sender may not be the application (RFC 6749, 4.1.2.1).
 */
function readAuthorizationRequest(applications: Applications, query: URLSearchParams): AuthorizationRequest {
  const clientId = one(query, 'client_id');
  if (!clientId) throw new Problem(400, 'The request must name one client_id.');
  const application = applications.get(clientId);
  if (application === undefined) throw new Problem(400, `No application is registered as ${clientId}.`);
  const redirectUri = one(query, 'redirect_uri');
  if (!redirectUri) throw new Problem(400, 'The request must name one redirect_uri.');
  if (!application.redirect_uris.includes(redirectUri)) {
    throw new Problem(400, `${redirectUri} is not registered as an address of ${application.name}.`);
  }
  return { application, redirectUri, state: one(query, 'state'), wrong: wrongWith(query) };
}

/** The application's address with the result of its request. */
function addressWith(
  { redirectUri, state }: AuthorizationRequest,
  result: { code: string } | Refusal,
): string {
  const parameters = Object.entries({ ...result, ...(state !== undefined && { state }) });
  // Percent-encoded throughout (not + for a space): it reads the same for every decoder.
  const query = parameters.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
  return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${query}`;
}

/** Sends the browser to the application. @param status 303 after a form, so that the browser asks with GET */
function redirect(location: string, status: 302 | 303): Answer {
  const headers = { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' };
  return { status, headers, body: '' };
}

/** The code that a teammate's consent gives, or why there is none; undefined when there is no such teammate. */
function approve(world: World, request: AuthorizationRequest, teammateId: string) {
  const { application, redirectUri } = request;
  const found = world.companies.findTeammate(teammateId);
  if (found === undefined) return undefined;
  if (!found.teammate.is_admin && application.kind !== 'tool-protocol') {
    const error_description = 'Only an administrator of the company may authorize.';
    return { error: 'access_denied', error_description };
  }
  const grant = {
    clientId: application.client_id,
    companyId: found.company.id,
    teammateId,
    scopes: application.scopes,
    revoked: false,
  };
  return { code: world.codes.issue(grant, redirectUri, world.clock.now()) };
}

/** What the teammate decided on the consent page. */
function decide(world: World, request: AuthorizationRequest, form: Parameters): Answer {
  const [decision, teammateId = ''] = [form.get('decision'), form.get('teammate_id')];
  if (decision === 'deny') {
    const refusal = { error: 'access_denied', error_description: 'The teammate denied access.' };
    return redirect(addressWith(request, refusal), 303);
  }
  if (world.companies.findTeammate(teammateId) === undefined) {
    return consentPage(world, request, 'Choose who you are.');
  }
  const result = decision === 'approve' ? approve(world, request, teammateId) : undefined;
  if (result === undefined) return consentPage(world, request, 'Choose to approve or to deny.');
  return redirect(addressWith(request, result), 303);
}

async function respond(world: World, call: Call, form: Parameters | Problem | undefined): Promise<Answer> {
  const request = await orProblem(() => readAuthorizationRequest(world.applications, call.query));
  if (request instanceof Problem) return refusedPage(clipped(request.message));
  if (request.wrong !== undefined) {
    return redirect(addressWith(request, request.wrong), form === undefined ? 302 : 303);
  }
  if (form === undefined) return consentPage(world, request);
  return form instanceof Problem ? consentPage(world, request, form.message) : decide(world, request, form);
}

/** The authorize route: the consent page (GET), and what the teammate decides on it (POST). */
export async function prepareAuthorize(world: World, call: Call): Promise<Prepared> {
  const body = call.method === 'POST' ? await call.body(BODY_MAX_BYTES) : undefined;
  const form = body === undefined ? undefined : await orProblem(() => formParameters(body));
  const teammateId = form instanceof Problem ? undefined : form?.get('teammate_id');
  return {
    companyId: world.companies.findTeammate(teammateId ?? '')?.company.id,
    application: world.applications.get(call.query.get('client_id') ?? '')?.client_id,
    ignored: ignoredParts('query', call.query.keys(), QUERY),
    perform: (instead) => instead ?? respond(world, call, form),
  };
}

/**
 * A teammate's consent without the page.
 *
 * @returns the code, and where the browser would be sent. Throws a {@link Problem} that says why there is none
 */
export function grantWithoutBrowser(
  world: World,
  query: { client_id: string; redirect_uri: string; state?: string },
  teammateId: string,
): { code: string; url: string } {
  const parameters = new URLSearchParams({ ...query, response_type: 'code' });
  const request = readAuthorizationRequest(world.applications, parameters);
  const result = approve(world, request, teammateId);
  if (result === undefined) throw new Problem(404, `There is no teammate ${teammateId}.`);
  if (result.code === undefined) throw new Problem(403, result.error_description);
  return { code: result.code, url: addressWith(request, result) };
}
