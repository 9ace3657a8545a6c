import type { Collection, Document, Owner } from './collection.ts';
import { AT_START_S, few } from './few.ts';

/** What an article says in one locale; members that the contract does not name are kept too. */
export type ArticleContent = Readonly<Record<string, unknown>> & {
  readonly subject: string;
  readonly content: string;
  readonly status: 'draft' | 'published';
  readonly author_id: string | null;
  readonly created_at: number;
  readonly updated_at: number;
};

/** An article of a knowledge base. */
export type Article = Document & {
  readonly knowledge_base_id: string;
  /** The knowledge base's. */
  readonly default_locale: string;
  /** By locale; at least one, the one that it was written in first at the beginning. */
  readonly contents: Readonly<Record<string, ArticleContent>>;
};

/** The article as the API shows it in one of its locales. */
export function presentArticle(article: Article, locale: string, baseUrl: string): object {
  const self = `${baseUrl}/knowledge_base_articles/${article.id}`;
  return {
    ...article.contents[locale],
    _links: {
      self,
      content: `${self}/locales/${encodeURIComponent(locale)}/content`,
      knowledge_base: `${baseUrl}/knowledge_bases/${article.knowledge_base_id}`,
    },
    id: article.id,
    knowledge_base_id: article.knowledge_base_id,
    locale,
    default_locale: article.default_locale,
    locales: Object.keys(article.contents),
  };
}

/** The locale that an article is shown in when none is asked for: the default one, or the first it was written in. */
function shownLocale({ contents, default_locale }: Article): string {
  return contents[default_locale] === undefined
    ? (Object.keys(contents)[0] ?? default_locale)
    : default_locale;
}

type Text = Pick<ArticleContent, 'subject' | 'content'>;

const AT_START: readonly { en: Text; de?: Text }[] = [
  {
    en: { subject: 'Getting started', content: '<p>Write to us, and a person answers.</p>' },
    de: { subject: 'Erste Schritte', content: '<p>Schreiben Sie uns: Ein Mensch antwortet.</p>' },
  },
  { en: { subject: 'Returns and refunds', content: '<p>Send it back within thirty days.</p>' } },
];

/** The articles of a company, all in one knowledge base at start: one in both of its locales, one in English alone. */
export function articles(owner: Owner, knowledgeBaseId: string, authorId: string): Collection<Article> {
  const published = (text: Text): ArticleContent => ({
    ...text,
    status: 'published',
    author_id: authorId,
    created_at: AT_START_S,
    updated_at: AT_START_S,
  });
  return few<Article>(owner, {
    prefix: 'kba',
    start: AT_START.map((texts) => (id) => ({
      id,
      knowledge_base_id: knowledgeBaseId,
      default_locale: 'en',
      contents: Object.fromEntries(Object.entries(texts).map(([locale, text]) => [locale, published(text)])),
    })),
    present: (article, baseUrl) => presentArticle(article, shownLocale(article), baseUrl),
  });
}
