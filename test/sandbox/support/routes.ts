import { expect } from 'vitest';
import { z } from 'zod';
import type { ROUTES } from '../../../src/contract/api/api.ts';
import { GUARDS } from '../../../src/contract/guards.ts';
import { at, type Company, startFrozen, type TestSandbox } from './test-sandbox.ts';

/** A document, as far as tests of any kind of it look. */
export interface Document {
  [member: string]: unknown;
  _links: { self: string; content?: string };
  id: string;
}

export interface List<T = Document> {
  _pagination: { next: string | null };
  _links: { self: string };
  _results: T[];
}

type Route = (typeof ROUTES)[number][1];

/** Method, path and body. */
export type Request = readonly [method: string, path: string, body?: unknown];

/** Guards that stop nobody. */
const GUARDS_OPEN = Object.fromEntries(
  Object.entries(GUARDS).map(([name, rule]) => [name, { ...rule, limit: 10_000 }]),
);

/** A company that no limit and no guard stops, and calls with its first token. @param spec of the company */
export async function startOpen(spec: object = {}) {
  const service = await startFrozen({ guards: GUARDS_OPEN });
  const company = service.company({ plan: 'enterprise', addon_rpm: 10_000, ...spec });
  const { token } = at(company.api_tokens, 0);
  const send = <T = Document>(method: string, path: string, body?: unknown, by = token) =>
    service.call<T>(method, path, by, body);
  const read = async <T = Document>(path: string, by = token) =>
    (await send<T>('GET', path, undefined, by)).body;
  return {
    service,
    company,
    token,
    send,
    read,
    list: async <T = Document>(path: string, by = token) => (await read<List<T>>(path, by))._results,
    /** All pages of a list from this one on. */
    pages: async <T = Document>(path: string, by = token) => {
      const pages: List<T>[] = [];
      for (let next: string | null = path; next !== null; ) {
        const page: List<T> = await read(next, by);
        pages.push(page);
        next = page._pagination.next;
      }
      return pages;
    },
    counts: () => ({ ...service.sandbox.companies().find(({ id }) => id === company.id)?.counts }),
    /** Sends requests, which must all get this status. */
    expectStatus: async (status: number, requests: readonly Request[], by = token) => {
      for (const [method, path, body] of requests) {
        const answer = await send(method, path, method === 'GET' ? undefined : body, by);
        expect([method, path, body, answer.status]).toEqual([method, path, body, status]);
      }
    },
  };
}

/** Values for all placeholders of the contract's paths, each of a record of the company. */
export async function idsOf(service: TestSandbox, company: Company): Promise<Record<string, string>> {
  const { token } = at(company.api_tokens, 0);
  const application_uid = service.sandbox.application.client_id;
  const kb_id = at(company.knowledge_bases, 0);
  const ask = async <T>(...[method, path, body]: Request) =>
    (await service.call<T>(method, path, token, body)).body;
  const first = async (path: string) => at((await ask<List>('GET', path))._results, 0).id;
  const made = async (path: string, body: object) => (await ask<Document>('POST', path, body)).id;
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
    kba_id: at(company.articles, 0),
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
  service.advance(5_000);
  return ids;
}

/** A path of the contract with these values in place of its placeholders. */
export function filled(path: string, ids: Readonly<Record<string, string>>): string {
  return path.replace(/:(\w+)/g, (_, name: string) => ids[name] ?? 'none');
}

/** A body with something for each member that the route takes; the ids are those of {@link idsOf}. */
export function goodBody({ body }: Route, ids: Record<string, string>): object | undefined {
  const { tag_id, link_id, teammate_id, inbox_id, channel_id } = ids;
  const members = {
    ...{ name: 'Größen & Søn 💛', description: 'since Monday', subject: 'Überfällig', body: '<p>S–XL</p>' },
    ...{ sender: { handle: 'a@b.example' }, to: ['c@d.example'], type: 'custom', text: 'S–XL' },
    ...{ start: 1, end: 2, timezone: 'Europe/Berlin', filters: { of_ours: 'x' }, settings: { deep: [1] } },
    ...{ tag_ids: [tag_id], link_ids: [link_id], assignee_id: teammate_id, teammate_id, scheduled_at: null },
    ...{ domains: ['son.example'], is_blocked: true, external_id: 'erp/17', is_available: false },
    ...{ external_url: 'https://shop.example/77?tab=items#top', username: 'élo.dc', highlight: 'red' },
    ...{ first_name: 'Größen', last_name: '& Søn 💛', inbox_id, channel_id, author_id: teammate_id },
    custom_fields: { tier: 'gold', notes: [null, { deep: true }] },
  };
  if (!(body instanceof z.ZodObject)) return undefined;
  return Object.fromEntries(Object.entries(members).filter(([member]) => member in body.shape));
}
