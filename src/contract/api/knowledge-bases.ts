import { z } from 'zod';
import { id, links, timestamp } from './common.ts';
import { defineRoutes, type RouteContract } from './route.ts';

const locale = z.string().min(1);

/** A knowledge base, with its content in one locale: the default one, unless another was asked for. */
export const knowledgeBase = z.looseObject({
  _links: links.extend({ content: z.url(), articles: z.url() }),
  id,
  name: z.string(),
  locale,
  default_locale: locale,
  locales: z.array(locale),
  created_at: timestamp,
  updated_at: timestamp,
});

/** Changes of a knowledge base's content in one locale. */
const knowledgeBaseChanges = z.looseObject({ name: z.string().trim().min(1).optional() });

const articleStatus = z.enum(['draft', 'published']);

/** An article, with its content in one locale; `locales` are those that it is written in. */
export const article = z.looseObject({
  _links: links.extend({ content: z.url(), knowledge_base: z.url() }),
  id,
  knowledge_base_id: id,
  subject: z.string(),
  content: z.string(),
  status: articleStatus,
  author_id: id.nullable(),
  locale,
  default_locale: locale,
  locales: z.array(locale),
  created_at: timestamp,
  updated_at: timestamp,
});

/** An article's content in one locale, or changes of it. All of it may come later: an article begins as a draft. */
const articleContent = z.looseObject({
  subject: z.string().optional(),
  content: z.string().optional(),
  status: articleStatus.optional(),
  author_id: id.nullable().optional(),
});

/** Only API tokens with this scope reach knowledge bases (Authentication, 9). */
const reach = 'knowledge_base';

// The locale is no part of the keys: the specification groups by kb_id and kba_id, per route.
const perKnowledgeBase = { guard: 'resource', by: [':kb_id'] } as const satisfies RouteContract['guard'];
const perArticle = { guard: 'resource', by: [':kba_id'] } as const satisfies RouteContract['guard'];

export const knowledgeBasesRoutes = defineRoutes({
  listKnowledgeBases: {
    method: 'GET',
    path: '/knowledge_bases',
    summary: 'Lists knowledge bases',
    source: 'choice',
    reach,
    list: true,
    answer: knowledgeBase,
  },
  getKnowledgeBase: {
    method: 'GET',
    path: '/knowledge_bases/:kb_id',
    summary: 'Fetches one knowledge base, in its default locale',
    source: 'choice',
    reach,
    answer: knowledgeBase,
  },
  getKnowledgeBaseContent: {
    method: 'GET',
    path: '/knowledge_bases/:kb_id/content',
    summary: 'Fetches a knowledge base’s content in its default locale',
    source: 'choice',
    reach,
    answer: knowledgeBase,
  },
  updateKnowledgeBaseContent: {
    method: 'PATCH',
    path: '/knowledge_bases/:kb_id/content',
    summary: 'Changes a knowledge base’s content in its default locale',
    source: 'specified',
    reach,
    body: knowledgeBaseChanges,
    answer: knowledgeBase,
    guard: perKnowledgeBase,
  },
  getKnowledgeBaseLocaleContent: {
    method: 'GET',
    path: '/knowledge_bases/:kb_id/locales/:locale/content',
    summary: 'Fetches a knowledge base’s content in a locale',
    source: 'choice',
    reach,
    answer: knowledgeBase,
  },
  updateKnowledgeBaseLocaleContent: {
    method: 'PATCH',
    path: '/knowledge_bases/:kb_id/locales/:locale/content',
    summary: 'Changes a knowledge base’s content in a locale',
    source: 'specified',
    reach,
    body: knowledgeBaseChanges,
    answer: knowledgeBase,
    guard: perKnowledgeBase,
  },
  listArticles: {
    method: 'GET',
    path: '/knowledge_bases/:kb_id/articles',
    summary: 'Lists the articles of a knowledge base',
    source: 'choice',
    reach,
    list: true,
    answer: article,
  },
  createArticle: {
    method: 'POST',
    path: '/knowledge_bases/:kb_id/articles',
    summary: 'Creates an article in the knowledge base’s default locale',
    source: 'specified',
    reach,
    body: articleContent,
    status: 201,
    answer: article,
    guard: perKnowledgeBase,
  },
  createLocaleArticle: {
    method: 'POST',
    path: '/knowledge_bases/:kb_id/locales/:locale/articles',
    summary: 'Creates an article in a locale',
    source: 'specified',
    reach,
    body: articleContent,
    status: 201,
    answer: article,
    guard: perKnowledgeBase,
  },
  getArticle: {
    method: 'GET',
    path: '/knowledge_base_articles/:kba_id',
    summary: 'Fetches one article, in the default locale if it is written in that',
    source: 'choice',
    reach,
    answer: article,
  },
  getArticleContent: {
    method: 'GET',
    path: '/knowledge_base_articles/:kba_id/content',
    summary: 'Fetches an article’s content in the default locale',
    source: 'choice',
    reach,
    answer: article,
  },
  updateArticleContent: {
    method: 'PATCH',
    path: '/knowledge_base_articles/:kba_id/content',
    summary: 'Changes an article’s content in the default locale',
    source: 'specified',
    reach,
    body: articleContent,
    answer: article,
    guard: perArticle,
  },
  getArticleLocaleContent: {
    method: 'GET',
    path: '/knowledge_base_articles/:kba_id/locales/:locale/content',
    summary: 'Fetches an article’s content in a locale',
    source: 'choice',
    reach,
    answer: article,
  },
  updateArticleLocaleContent: {
    method: 'PATCH',
    path: '/knowledge_base_articles/:kba_id/locales/:locale/content',
    summary: 'Changes an article’s content in a locale, or adds it',
    source: 'specified',
    reach,
    body: articleContent,
    answer: article,
    guard: perArticle,
  },
});
