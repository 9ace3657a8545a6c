import type { Collection, Document, Owner } from './collection.ts';
import { few } from './few.ts';

/** A knowledge base; in reach of API tokens with its scope alone (Authentication, 9). */
export type KnowledgeBase = Document & { readonly name: string; readonly locales: readonly string[] };

/** The knowledge bases of a company. */
export function knowledgeBases(owner: Owner): Collection<KnowledgeBase> {
  return few<KnowledgeBase>(owner, {
    prefix: 'knb',
    start: [(id) => ({ id, name: 'Help centre', locales: ['en', 'de'] })],
    present: (base, baseUrl) => ({
      _links: { self: `${baseUrl}/knowledge_bases/${base.id}` },
      ...base,
    }),
  });
}
