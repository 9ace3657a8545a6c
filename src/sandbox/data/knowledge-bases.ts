import type { Document, Kind, Stored } from './record.ts';

/** What both say in one locale; members that the contract does not name are kept too. */
type Content<Op extends 'getKnowledgeBase' | 'getArticle'> = Stored<
  Op,
  'id' | 'knowledge_base_id' | 'locale' | 'default_locale' | 'locales'
>;

export type ArticleContent = Content<'getArticle'>;

/** A knowledge base; in reach of API tokens with its scope alone (Authentication, 9). */
export type KnowledgeBase = Document & {
  readonly default_locale: string;
  /** By locale, the default one among them. */
  readonly contents: Readonly<Record<string, Content<'getKnowledgeBase'>>>;
};

/** An article of a knowledge base. */
export type Article = Document & {
  readonly knowledge_base_id: string;
  /** The knowledge base's. */
  readonly default_locale: string;
  /** By locale; at least one, the one that it was written in first at the beginning. */
  readonly contents: Readonly<Record<string, ArticleContent>>;
};

function inLocale({ id, default_locale, contents }: KnowledgeBase | Article, locale: string) {
  return { id, locale, default_locale, locales: Object.keys(contents) };
}

/** The knowledge base as the API shows it in one of its locales. */
export function presentKnowledgeBase(base: KnowledgeBase, locale: string, baseUrl: string): object {
  const self = `${baseUrl}/knowledge_bases/${base.id}`;
  const content = `${self}/locales/${encodeURIComponent(locale)}/content`;
  const _links = { self, content, articles: `${self}/articles` };
  return { ...base.contents[locale], _links, ...inLocale(base, locale) };
}

/** The article as the API shows it in one of its locales. */
export function presentArticle(article: Article, locale: string, baseUrl: string): object {
  const { knowledge_base_id } = article;
  const self = `${baseUrl}/knowledge_base_articles/${article.id}`;
  const content = `${self}/locales/${encodeURIComponent(locale)}/content`;
  const _links = { self, content, knowledge_base: `${baseUrl}/knowledge_bases/${knowledge_base_id}` };
  return { ...article.contents[locale], _links, knowledge_base_id, ...inLocale(article, locale) };
}

/** The locale that an article is shown in when none is asked for: the default one, or the first it was written in. */
function shownLocale({ contents, default_locale }: Article): string {
  return contents[default_locale] === undefined
    ? (Object.keys(contents)[0] ?? default_locale)
    : default_locale;
}

export const knowledgeBaseKind: Kind<KnowledgeBase> = {
  prefix: 'knb',
  present: (base, baseUrl) => presentKnowledgeBase(base, base.default_locale, baseUrl),
};

export const articleKind: Kind<Article> = {
  prefix: 'kba',
  present: (article, baseUrl) => presentArticle(article, shownLocale(article), baseUrl),
};
