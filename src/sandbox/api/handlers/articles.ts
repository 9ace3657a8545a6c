import { type Article, type ArticleContent, presentArticle } from '../../data/articles.ts';
import type { KnowledgeBase } from '../../data/knowledge-bases.ts';
import { Problem } from '../../http/answer.ts';
import { type ApiContext, type ApiRequest, named, own, seconds } from '../request.ts';

type Body = ApiRequest<'createArticle'>['body'];

/** An article, and one of its knowledge base's locales. */
interface ArticleIn {
  article: Article;
  locale: string;
}

/** An article begins as an empty draft. */
const NEW = { subject: 'Untitled', content: '', status: 'draft', author_id: null } as const;

/** What an article says in a locale after a change. Throws a `Problem` (422) for an author who is not there. */
function contentOf(request: ApiContext, before: ArticleContent | undefined, body: Body): ArticleContent {
  if (typeof body.author_id === 'string') named(request, request.tables.teammates, body.author_id);
  const at = seconds(request.now);
  const content = { ...NEW, created_at: at, ...before, ...own(body), updated_at: at };
  return content as ArticleContent;
}

/** The article in that locale; throws a `Problem` (404) when it is not written in it. */
export function showArticleIn(request: ApiContext, { article, locale }: ArticleIn): object {
  if (article.contents[locale] === undefined) {
    throw new Problem(404, `${article.id} is not written in ${locale} yet.`);
  }
  return presentArticle(article, locale, request.call.baseUrl);
}

/** Adds an article that is written in that locale. */
export function createArticle(request: ApiContext, base: KnowledgeBase, locale: string, body: Body): object {
  const content = contentOf(request, undefined, body);
  const article = request.tables.articles.add((id) => ({
    id,
    knowledge_base_id: base.id,
    default_locale: base.default_locale,
    contents: { [locale]: content },
  }));
  return showArticleIn(request, { article, locale });
}

/** Changes what an article says in that locale; where it is not written in it yet, this is its translation. */
export function changeArticle(request: ApiContext, { article, locale }: ArticleIn, body: Body): object {
  const content = contentOf(request, article.contents[locale], body);
  const contents = { ...article.contents, [locale]: content };
  return showArticleIn(request, {
    article: request.tables.articles.replace({ ...article, contents }),
    locale,
  });
}
