import type { RouteContract } from '../../contract/api/route.ts';
import type { GuardRules } from '../../contract/guards.ts';
import { type Bucket, bucketOf } from '../budget/bucket.ts';
import { ServiceError } from '../errors.ts';
import type { HttpRequest } from '../http.ts';
import type { CallOptions } from './call-types.ts';

/** A call that is ready to be sent, as often as it takes. */
export interface PreparedCall {
  contract: RouteContract;
  request: HttpRequest;
  /** Names the route in metrics and in what the service blocks: as the sync does for what it reads. */
  route: string;
  bucket: Bucket | undefined;
  options: CallOptions;
}

type AnyOptions = CallOptions & { limit?: number; respondAsync?: boolean };

type Params = Readonly<Record<string, string | number>>;

/**
 * Makes a request of a method's arguments: what the path needs, what is sent, options.
 *
 * @param apiUrl `{base_url}`, without a slash at its end
 * @throws ServiceError to give up on, when something is missing in the path
 */
export function prepareCall(
  contract: RouteContract,
  args: readonly unknown[],
  apiUrl: string,
  rules: GuardRules,
): PreparedCall {
  const rest = [...args];
  const params = contract.path.includes('/:') ? ((rest.shift() ?? {}) as Params) : {};
  const body = contract.body === undefined ? undefined : rest.shift();
  const options = (rest.shift() ?? {}) as AnyOptions;
  const { method, path, mediaType } = contract;

  const url = new URL(apiUrl + fillPath(path, params));
  if (options.limit !== undefined) url.searchParams.set('limit', String(options.limit));
  return {
    contract,
    request: {
      method,
      url,
      headers: {
        ...(mediaType === undefined ? {} : { accept: mediaType }),
        // RFC 7240; the specification does not show how the asynchronous form is asked for.
        ...(options.respondAsync ? { prefer: 'respond-async' } : {}),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    },
    route: method === 'GET' ? path : `${method} ${path}`,
    bucket: bucketOf(contract, textOf(params), body, rules),
    options,
  };
}

/** Puts values into a path, so that each stays the one segment that it is. */
function fillPath(path: string, params: Params): string {
  return path.replace(/(?<=\/):(\w+)/g, (_placeholder, name: string) => {
    const value: unknown = params[name];
    const text = typeof value === 'number' ? String(value) : value;
    // Dots alone would lead to another path, also when they are encoded.
    if (typeof text !== 'string' || text === '' || text === '.' || text === '..') {
      throw new ServiceError('give_up', `${path} needs a ${name}: nothing was sent.`);
    }
    return encodeURIComponent(text);
  });
}

function textOf(params: Params): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]));
}
