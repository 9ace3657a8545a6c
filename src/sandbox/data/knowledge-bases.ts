import type { Collection, Document, Owner } from './collection.ts';
import { AT_START_S, few } from './few.ts';

/** What a knowledge base says in one locale; members that the contract does not name are kept too. */
export type KnowledgeBaseContent = Readonly<Record<string, unknown>> & {
  readonly name: string;
  readonly created_at: number;
  readonly updated_at: number;
};

/** A knowledge base; in reach of API tokens with its scope alone (Authentication, 9). */
export type KnowledgeBase = Document & {
  readonly default_locale: string;
  /** By locale, the default one among them. */
  readonly contents: Readonly<Record<string, KnowledgeBaseContent>>;
};

/** The knowledge base as the API shows it in one of its locales. */
export function presentKnowledgeBase(base: KnowledgeBase, locale: string, baseUrl: string): object {
  const self = `${baseUrl}/knowledge_bases/${base.id}`;
  return {
    ...base.contents[locale],
    _links: {
      self,
      content: `${self}/locales/${encodeURIComponent(locale)}/content`,
      articles: `${self}/articles`,
    },
    id: base.id,
    locale,
    default_locale: base.default_locale,
    locales: Object.keys(base.contents),
  };
}

const NAMES = { en: 'Help centre', de: 'Hilfe-Center' };

/** The knowledge bases of a company: one, in English and in German. */
export function knowledgeBases(owner: Owner): Collection<KnowledgeBase> {
  const contents = Object.fromEntries(
    Object.entries(NAMES).map(([locale, name]) => [
      locale,
      { name, created_at: AT_START_S, updated_at: AT_START_S },
    ]),
  );
  return few<KnowledgeBase>(owner, {
    prefix: 'knb',
    start: [(id) => ({ id, default_locale: 'en', contents })],
    present: (base, baseUrl) => presentKnowledgeBase(base, base.default_locale, baseUrl),
  });
}
