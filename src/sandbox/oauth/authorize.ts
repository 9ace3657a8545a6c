import { type Answer, Problem } from '../http/answer.ts';
import type { Call } from '../http/call.ts';
import type { Prepared } from '../http/exchange.ts';
import { consentPage, refusedPage } from '../pages/oauth-pages.ts';
import type { Applications } from '../state/applications.ts';
import type { Application } from '../types.ts';
import type { World } from '../world.ts';
import { formParameters, type Parameters } from './parameters.ts';

const BODY_MAX_BYTES = 16 * 1024;

/** An authorization request of a registered application to one of its own addresses. */
export interface AuthorizationRequest {
  application: Application;
  redirectUri: string;
  /** Undefined when the request carries none. */
  state: string | undefined;
}

/** A request that must not lead anywhere: its sender may not be the application (RFC 6749, 4.1.2.1). */
interface UntrustedRequest {
  problem: string;
}

/** A request that is the application's, but wrong: it hears about it at its own address. */
interface WrongRequest {
  request: AuthorizationRequest;
  error: 'invalid_request' | 'unsupported_response_type';
  description: string;
}

function one(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  return values.length === 1 ? values[0] : undefined;
}

/** Checks the query of an authorize request (OAuth routes, "Authorize request query parameters"). */
function readAuthorizationRequest(
  applications: Applications,
  query: URLSearchParams,
): AuthorizationRequest | UntrustedRequest | WrongRequest {
  const clientId = one(query, 'client_id');
  if (!clientId) return { problem: 'The request must name one client_id.' };
  const application = applications.get(clientId);
  if (application === undefined) return { problem: `No application is registered as ${clientId}.` };
  const redirectUri = one(query, 'redirect_uri');
  if (!redirectUri) return { problem: 'The request must name one redirect_uri.' };
  if (!application.redirect_uris.includes(redirectUri)) {
    return { problem: `${redirectUri} is not registered as an address of ${application.name}.` };
  }
  const state = one(query, 'state');
  const request = { application, redirectUri, state };
  if (query.getAll('state').length > 1) {
    return { request, error: 'invalid_request', description: 'state is given more than once.' };
  }
  const responseType = one(query, 'response_type');
  if (responseType === undefined) {
    return { request, error: 'invalid_request', description: 'The request must name one response_type.' };
  }
  if (responseType !== 'code') {
    return { request, error: 'unsupported_response_type', description: 'response_type must be code.' };
  }
  return request;
}

/** Sends the browser to the application. @param status 303 after a form, so that the browser asks with GET */
function redirect(
  { redirectUri, state }: AuthorizationRequest,
  result: Record<string, string>,
  status: 302 | 303,
): Answer {
  const parameters = Object.entries(state === undefined ? result : { ...result, state });
  // Percent-encoded throughout (not + for a space): it reads the same for every decoder.
  const query = parameters.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
  const location = `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${query}`;
  return {
    status,
    headers: { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' },
    body: '',
  };
}

function decide(world: World, request: AuthorizationRequest, form: Parameters): Answer {
  const { application, redirectUri } = request;
  const decision = form.get('decision');
  if (decision === 'deny') {
    return redirect(request, { error: 'access_denied', error_description: 'The teammate said no.' }, 303);
  }
  const found = world.companies.findTeammate(form.get('teammate_id') ?? '');
  if (found === undefined) return consentPage(world, request, 'Choose the teammate who you are.');
  if (decision !== 'approve') return consentPage(world, request, 'Choose to approve or to deny.');
  const { company, teammate } = found;
  if (!teammate.is_admin && application.kind !== 'tool-protocol') {
    return redirect(
      request,
      { error: 'access_denied', error_description: 'Only an administrator of the company may authorize.' },
      303,
    );
  }
  const grant = {
    clientId: application.client_id,
    companyId: company.id,
    teammateId: teammate.id,
    scopes: application.scopes,
    revoked: false,
  };
  return redirect(request, { code: world.codes.issue(grant, redirectUri, world.clock.now()) }, 303);
}

function respond(world: World, call: Call, form: Parameters | string | undefined): Answer {
  const request = readAuthorizationRequest(world.applications, call.query);
  if ('problem' in request) return refusedPage(request.problem);
  if ('error' in request) {
    const { error, description } = request;
    return redirect(
      request.request,
      { error, error_description: description },
      form === undefined ? 302 : 303,
    );
  }
  if (form === undefined) return consentPage(world, request);
  return typeof form === 'string' ? consentPage(world, request, form) : decide(world, request, form);
}

/** The authorize route: the consent page (GET), and what the teammate decides on it (POST). */
export async function prepareAuthorize(world: World, call: Call): Promise<Prepared> {
  const form =
    call.method === 'POST' ? formParameters((await call.body(BODY_MAX_BYTES)).toString('utf8')) : undefined;
  const teammateId = typeof form === 'object' ? form.get('teammate_id') : undefined;
  return {
    companyId: world.companies.findTeammate(teammateId ?? '')?.company.id,
    application: world.applications.get(call.query.get('client_id') ?? '')?.client_id,
    perform: (instead) => instead ?? respond(world, call, form),
  };
}

/**
 * A teammate's consent without the page.
 *
 * @returns where the browser would be sent, with the code. Throws a {@link Problem} that says why there is none
 */
export function grantWithoutBrowser(
  world: World,
  query: { client_id: string; redirect_uri: string; state?: string },
  teammateId: string,
): string {
  const parameters = new URLSearchParams({ ...query, response_type: 'code' });
  const request = readAuthorizationRequest(world.applications, parameters);
  if ('problem' in request) throw new Problem(400, request.problem);
  if ('error' in request) throw new Problem(400, request.description);
  const form = new Map([
    ['teammate_id', teammateId],
    ['decision', 'approve'],
  ]);
  const { location } = decide(world, request, form).headers;
  if (location === undefined) throw new Problem(404, `There is no teammate ${teammateId}.`);
  const refusal = new URL(location).searchParams.get('error_description');
  if (refusal !== null) throw new Problem(403, refusal);
  return location;
}
