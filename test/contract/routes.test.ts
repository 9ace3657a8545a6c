import { expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';

/** The routes of the specification's tables (Endpoints), by method. */
const SPECIFIED = {
  GET: `/contacts /conversations /conversations/search/:query /responses /responses/:response_id
    /tags/:tag_id/children /teammates/:teammate_id/inboxes`,
  POST: `/accounts /analytics/exports /analytics/reports /applications/:application_uid/events
    /channels/:channel_id/inbound_messages /channels/:channel_id/incoming_messages
    /channels/:channel_id/messages /channels/:channel_id/outbound_message
    /conversations/:conversation_id/links /conversations/:conversation_id/messages
    /conversations/:conversation_id/tags /inboxes/:inbox_id/channels /inboxes/:inbox_id/imported_messages
    /knowledge_bases/:kb_id/articles /knowledge_bases/:kb_id/locales/:locale/articles
    /links /messages/:message_id/seen /tags/:tag_id/children`,
  PUT: `/channels/:channel_id/conversations/:conv_ext_id/messages/:message_ext_id
    /conversations/:conversation_id/assignee`,
  PATCH: `/accounts/:account_id /conversations/:conversation_id /conversations/:conversation_id/reminders
    /knowledge_bases/:kb_id/content /knowledge_bases/:kb_id/locales/:locale/content
    /knowledge_base_articles/:kba_id/content /knowledge_base_articles/:kba_id/locales/:locale/content
    /tags/:tag_id /teammates/:teammate_id`,
  DELETE: '/conversations/:conversation_id/links /conversations/:conversation_id/tags',
};

test('The routes of the specification are there, and no other is taken for one of it', () => {
  const specified = ROUTES.filter(([, { source }]) => source === 'specified');
  const rows = Object.entries(SPECIFIED).flatMap(([method, paths]) =>
    paths.split(/\s+/).map((path) => `${method} ${path}`),
  );
  expect(specified.map(([, { method, path }]) => `${method} ${path}`).toSorted()).toEqual(rows.toSorted());
});
