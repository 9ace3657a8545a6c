import { IDENTITY_PATH } from '../../contract/routes.ts';
import type { Collection } from '../data/collection.ts';
import { type Answer, json, Problem } from '../http/answer.ts';
import type { Call } from '../http/call.ts';
import type { Route } from '../http/router.ts';
import type { Company } from '../state/company.ts';
import { listPage } from './list.ts';

/** A request that is authenticated and within the limit. */
export interface ApiRequest {
  call: Call;
  company: Company;
  /** Values of the path's placeholders. */
  params: Record<string, string>;
}

/** What answers an API route. Throws a `Problem` for what cannot be served. */
export type ApiHandler = (request: ApiRequest) => Answer;

function me({ call, company }: ApiRequest): Answer {
  const { id, name } = company;
  return json(200, { _links: { self: `${call.baseUrl}${IDENTITY_PATH}` }, id, name });
}

function single({ call }: ApiRequest, collection: Collection, id: string | undefined): Answer {
  const document = collection.find(id ?? '', call.baseUrl);
  if (document === undefined) throw new Problem(404, `There is no ${call.path} here.`);
  return json(200, document);
}

/** The API's routes below `{base_url}` (Endpoints). */
export const API_ROUTES: readonly Route<ApiHandler>[] = [
  { method: 'GET', path: IDENTITY_PATH, handle: me },
  {
    method: 'GET',
    path: '/contacts',
    handle: ({ call, company }) => listPage(call, company.id, company.contacts),
  },
  {
    method: 'GET',
    path: '/contacts/:contact_id',
    handle: (request) => single(request, request.company.contacts, request.params.contact_id),
  },
  {
    method: 'GET',
    path: '/conversations',
    handle: ({ call, company }) => listPage(call, company.id, company.conversations),
  },
  {
    method: 'GET',
    path: '/conversations/:conversation_id',
    handle: (request) => single(request, request.company.conversations, request.params.conversation_id),
  },
];
