import { ROUTES } from '../../../src/contract/api/api.ts';
import { GUARDS } from '../../../src/contract/guards.ts';
import { at, type Company, startFrozen, type TestSandbox } from './test-sandbox.ts';

/** A document, as far as tests of any kind of it look. */
export interface Document {
  [member: string]: unknown;
  _links: { self: string; content?: string };
  id: string;
}

export interface List {
  _pagination: { next: string | null };
  _links: { self: string };
  _results: Document[];
}

/** Guards that stop nobody. */
const GUARDS_OPEN = Object.fromEntries(
  Object.entries(GUARDS).map(([name, rule]) => [name, { ...rule, limit: 10_000 }]),
);

/** A company that no limit and no guard stops, and calls with its first token. @param spec of the company */
export async function startOpen(spec: object = {}) {
  const service = await startFrozen({ guards: GUARDS_OPEN });
  const company = await service.company({ plan: 'enterprise', addon_rpm: 10_000, ...spec });
  const { token } = at(company.api_tokens, 0);
  const send = <T = Document>(method: string, path: string, body?: unknown, by = token) =>
    service.call<T>(method, path, by, body);
  const read = async <T = Document>(path: string, by = token) =>
    (await send<T>('GET', path, undefined, by)).body;
  const list = async (path: string, by = token) => (await read<List>(path, by))._results;
  return { service, company, token, send, read, list };
}

/** Values for all placeholders of the contract's paths, each of a record of the company. */
export async function idsOf(service: TestSandbox, company: Company): Promise<Record<string, string>> {
  const { token } = at(company.api_tokens, 0);
  const application_uid = service.sandbox.application.client_id;
  const kb_id = at(company.knowledge_bases, 0);
  const first = async (path: string) =>
    at((await service.call<List>('GET', path, token)).body._results, 0).id;
  const made = async (path: string, body: object) =>
    (await service.call<Document>('POST', path, token, body)).body.id;
  const conversation_id = await first('/conversations');
  const ids = {
    contact_id: await first('/contacts'),
    conversation_id,
    message_id: await first(`/conversations/${conversation_id}/messages`),
    tag_id: at(company.tags, 0),
    account_id: at(company.accounts, 0),
    channel_id: at(company.channels, 0),
    inbox_id: at(company.inboxes, 0),
    link_id: at(company.links, 0),
    response_id: at(company.responses, 0),
    teammate_id: at(company.teammates, 1).id,
    kb_id,
    kba_id: await first(`/knowledge_bases/${kb_id}/articles`),
    locale: 'de',
    report_id: await made('/analytics/reports', {}),
    export_id: await made('/analytics/exports', {}),
    application_uid,
    event_id: await made(`/applications/${application_uid}/events`, { type: 'order' }),
    query: 'order',
    conv_ext_id: 'thread-1',
    message_ext_id: 'message-1',
  };
  await made(`/tags/${ids.tag_id}/children`, { name: 'Child' });
  await service.advance(5_000);
  return ids;
}

/** A path of the contract with these values in place of its placeholders. */
export function filled(path: string, ids: Readonly<Record<string, string>>): string {
  return path.replace(/:(\w+)/g, (_, name: string) => ids[name] ?? 'none');
}

/** The contract's route with this method at this path, placeholders and all. */
export function routeAt(wanted: string, at: string) {
  return ROUTES.find(([, { method, path }]) => method === wanted && path === at)?.[1];
}
