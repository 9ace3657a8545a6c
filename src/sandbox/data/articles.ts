import type { Collection, Document, Owner } from './collection.ts';
import { few } from './few.ts';

/** An article of a knowledge base. */
export type Article = Document & { readonly name: string; readonly knowledge_base_id: string };

/** The articles of a company, all in one knowledge base at start. */
export function articles(owner: Owner, knowledgeBaseId: string): Collection<Article> {
  return few<Article>(owner, {
    prefix: 'kba',
    start: ['Getting started', 'Returns and refunds'].map((name) => (id) => ({
      id,
      name,
      knowledge_base_id: knowledgeBaseId,
    })),
    present: (article, baseUrl) => ({
      _links: { self: `${baseUrl}/knowledge_base_articles/${article.id}` },
      ...article,
    }),
  });
}
