import type { knowledgeBasesRoutes } from '../../../contract/api/knowledge-bases.ts';
import { type KnowledgeBase, presentKnowledgeBase } from '../../data/knowledge-bases.ts';
import { Problem } from '../../http/answer.ts';
import { listPage, listWhere } from '../list.ts';
import { type ApiContext, type ApiRequest, type Handlers, own, reach, seconds, show } from '../request.ts';
import { changeArticle, createArticle, showArticleIn } from './articles.ts';

type Changes = ApiRequest<'updateKnowledgeBaseContent'>['body'];

function find(request: ApiContext, id: string): KnowledgeBase {
  return reach(request, request.tables.knowledge_bases, id);
}

/** The locale, if the knowledge base has it; throws a `Problem` (404) for another: it is a part of the path. */
function localeOf(base: KnowledgeBase, locale: string): string {
  if (Object.hasOwn(base.contents, locale)) return locale;
  throw new Problem(404, `${base.id} has no locale ${locale}, but ${Object.keys(base.contents).join(', ')}.`);
}

function showIn(request: ApiContext, base: KnowledgeBase, locale: string): object {
  return presentKnowledgeBase(base, localeOf(base, locale), request.call.baseUrl);
}

function change(request: ApiContext, base: KnowledgeBase, locale: string, body: Changes): object {
  const before = base.contents[localeOf(base, locale)];
  const content = { ...before, ...own(body), updated_at: seconds(request.now) };
  const contents = { ...base.contents, [locale]: content } as KnowledgeBase['contents'];
  return showIn(request, request.tables.knowledge_bases.replace({ ...base, contents }), locale);
}

/** The article, and the locale if its knowledge base has it: 404 for what there is not. */
function findArticle(request: ApiContext, id: string, locale?: string) {
  const article = reach(request, request.tables.articles, id);
  const base = find(request, article.knowledge_base_id);
  return { article, locale: localeOf(base, locale ?? base.default_locale) };
}

export const knowledgeBasesHandlers: Handlers<keyof typeof knowledgeBasesRoutes> = {
  listKnowledgeBases: (request) => listPage(request, request.tables.knowledge_bases),
  getKnowledgeBase: (request) =>
    show(request, request.tables.knowledge_bases, find(request, request.params.kb_id)),
  getKnowledgeBaseContent: (request) =>
    show(request, request.tables.knowledge_bases, find(request, request.params.kb_id)),
  updateKnowledgeBaseContent: (request) => {
    const base = find(request, request.params.kb_id);
    return change(request, base, base.default_locale, request.body);
  },
  getKnowledgeBaseLocaleContent: (request) =>
    showIn(request, find(request, request.params.kb_id), request.params.locale),
  updateKnowledgeBaseLocaleContent: (request) =>
    change(request, find(request, request.params.kb_id), request.params.locale, request.body),
  listArticles: (request) => {
    const base = find(request, request.params.kb_id);
    return listWhere(request, request.tables.articles, (article) => article.knowledge_base_id === base.id);
  },
  createArticle: (request) => {
    const base = find(request, request.params.kb_id);
    return createArticle(request, base, base.default_locale, request.body);
  },
  createLocaleArticle: (request) => {
    const base = find(request, request.params.kb_id);
    return createArticle(request, base, localeOf(base, request.params.locale), request.body);
  },
  getArticle: (request) =>
    show(request, request.tables.articles, reach(request, request.tables.articles, request.params.kba_id)),
  getArticleContent: (request) => showArticleIn(request, findArticle(request, request.params.kba_id)),
  updateArticleContent: (request) =>
    changeArticle(request, findArticle(request, request.params.kba_id), request.body),
  getArticleLocaleContent: (request) =>
    showArticleIn(request, findArticle(request, request.params.kba_id, request.params.locale)),
  updateArticleLocaleContent: (request) =>
    changeArticle(request, findArticle(request, request.params.kba_id, request.params.locale), request.body),
};
