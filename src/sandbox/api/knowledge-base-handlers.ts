import {
  type Article,
  type ArticleContent,
  type KnowledgeBase,
  presentArticle,
  presentKnowledgeBase,
} from '../data/knowledge-bases.ts';
import { ARTICLE } from '../data/literals.ts';
import { Problem } from '../http/answer.ts';
import { type ApiContext, type ApiRequest, type Handlers, own } from './request.ts';

/** A path below a knowledge base or an article: in the default locale, unless it names another. */
type InBase = ApiContext & { params: { kb_id: string; locale?: string } };
type InArticle = ApiContext & { params: { kba_id: string; locale?: string } };

type ArticleBody = ApiRequest<'createArticle'>['body'];

/** The locale that a path names, or the default one. Throws a `Problem` (404) when the knowledge base has it not. */
function localeIn(base: KnowledgeBase, locale = base.default_locale): string {
  if (Object.hasOwn(base.contents, locale)) return locale;
  throw new Problem(404, `${base.id} has no locale ${locale}, but ${Object.keys(base.contents).join(', ')}.`);
}

function findBase(request: InBase) {
  const base = request.reach('knowledge_bases', request.params.kb_id);
  return { base, locale: localeIn(base, request.params.locale) };
}

function findArticle(request: InArticle) {
  const article = request.reach('articles', request.params.kba_id);
  const base = request.reach('knowledge_bases', article.knowledge_base_id);
  return { article, locale: localeIn(base, request.params.locale) };
}

function changeBase(request: InBase & { body: ApiRequest<'updateKnowledgeBaseContent'>['body'] }) {
  const { base, locale } = findBase(request);
  const content = { ...base.contents[locale], ...own(request.body), updated_at: request.at };
  const contents = { ...base.contents, [locale]: content } as KnowledgeBase['contents'];
  const changed = request.tables.knowledge_bases.replace({ ...base, contents });
  return presentKnowledgeBase(changed, locale, request.call.baseUrl);
}

/** Throws a `Problem` (404) when the article is not written in the locale. */
function showArticle({ call }: ApiContext, article: Article, locale: string) {
  if (article.contents[locale] === undefined) {
    throw new Problem(404, `${article.id} is not written in ${locale} yet.`);
  }
  return presentArticle(article, locale, call.baseUrl);
}

/** An article's content in a locale after a change. Throws a `Problem` (422) for an author who is not there. */
function contentAfter(request: ApiContext, body: ArticleBody, before?: ArticleContent): ArticleContent {
  if (typeof body.author_id === 'string') request.named('teammates', body.author_id);
  const { at } = request;
  return { ...ARTICLE, created_at: at, ...before, ...own(body), updated_at: at } as ArticleContent;
}

function createArticle(request: InBase & { body: ArticleBody }) {
  const { base, locale } = findBase(request);
  const content = contentAfter(request, request.body);
  const article = request.tables.articles.add((id) => ({
    id,
    knowledge_base_id: base.id,
    default_locale: base.default_locale,
    contents: { [locale]: content },
  }));
  return showArticle(request, article, locale);
}

/** Changes the article in that locale; where it is not written in it yet, this is its translation. */
function changeArticle(request: InArticle & { body: ArticleBody }) {
  const { article, locale } = findArticle(request);
  const content = contentAfter(request, request.body, article.contents[locale]);
  const contents = { ...article.contents, [locale]: content };
  return showArticle(request, request.tables.articles.replace({ ...article, contents }), locale);
}

function articleContent(request: InArticle) {
  const { article, locale } = findArticle(request);
  return showArticle(request, article, locale);
}

/** Handlers of the routes of one locale, and of those that change the default one. */
export const knowledgeBaseHandlers = {
  getKnowledgeBaseLocaleContent: (request) => {
    const { base, locale } = findBase(request);
    return presentKnowledgeBase(base, locale, request.call.baseUrl);
  },
  updateKnowledgeBaseContent: changeBase,
  updateKnowledgeBaseLocaleContent: changeBase,
  createArticle,
  createLocaleArticle: createArticle,
  getArticleContent: articleContent,
  getArticleLocaleContent: articleContent,
  updateArticleContent: changeArticle,
  updateArticleLocaleContent: changeArticle,
} satisfies Partial<Handlers>;
