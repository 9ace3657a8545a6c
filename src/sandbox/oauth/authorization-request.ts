import type { Application, Applications } from '../state/applications.ts';

/** An authorization request of a registered application to one of its own addresses. */
export interface AuthorizationRequest {
  application: Application;
  redirectUri: string;
  /** Undefined when the request carries none. */
  state: string | undefined;
}

/** A request that must not lead anywhere: whoever sent it may not be the application (RFC 6749, 4.1.2.1). */
export interface UntrustedRequest {
  problem: string;
}

/** A request that is the application's, but wrong: it hears about it at its own address. */
export interface WrongRequest {
  request: AuthorizationRequest;
  error: 'invalid_request' | 'unsupported_response_type';
  description: string;
}

function one(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  return values.length === 1 ? values[0] : undefined;
}

/** Checks the query of an authorize request (OAuth routes, "Authorize request query parameters"). */
export function readAuthorizationRequest(
  applications: Applications,
  query: URLSearchParams,
): AuthorizationRequest | UntrustedRequest | WrongRequest {
  const clientId = one(query, 'client_id');
  if (!clientId) return { problem: 'The request must name one client_id.' };
  const application = applications.get(clientId);
  if (application === undefined) return { problem: `No application is registered as ${clientId}.` };
  const redirectUri = one(query, 'redirect_uri');
  if (!redirectUri) return { problem: 'The request must name one redirect_uri.' };
  if (!application.redirectUris.includes(redirectUri)) {
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
