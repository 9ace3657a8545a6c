import { isOfAccount } from '../data/kinds.ts';
import { channelHandlers } from './channels.ts';
import { conversationHandlers } from './conversation-handlers.ts';
import { knowledgeBaseHandlers } from './knowledge-base-handlers.ts';
import { listPage } from './list.ts';
import { messageHandlers } from './message-handlers.ts';
import { outsideMessageHandlers } from './outside-messages.ts';
import { recordHandlers } from './records.ts';
import type { ApiContext, Handlers, RecordOf, Table } from './request.ts';

/** The path has one placeholder: an id. */
type OfOne = ApiContext & { params: Record<string, string> };

function reachIn<Name extends Table>(request: OfOne, table: Name): RecordOf<Name> {
  return request.reach(table, Object.values(request.params)[0] ?? '');
}

function list(table: Table) {
  return (request: ApiContext) => listPage(request, table);
}

function get(table: Table) {
  return (request: OfOne) => request.show(table, reachIn(request, table));
}

/** Lists the records of a table that belong to the one that the path names. */
function listOf<Parent extends Table, Child extends Table>(
  parent: Parent,
  child: Child,
  belongs: (record: RecordOf<Child>, to: RecordOf<Parent>) => boolean,
) {
  return (request: OfOne) => {
    const to = reachIn(request, parent);
    return listPage(request, child, (record) => belongs(record, to));
  };
}

/** The handlers of all operations. Those with rules of their own are in other files. */
export const HANDLERS: Handlers = {
  getIdentity: (request) => {
    const { call, company, actingTeammate: teammate } = request;
    return {
      _links: { self: `${call.baseUrl}${call.path}` },
      id: company.id,
      name: company.name,
      ...(teammate && { teammate: request.show('teammates', teammate) }),
    };
  },

  listContacts: list('contacts'),
  getContact: get('contacts'),
  listConversations: list('conversations'),
  getConversation: get('conversations'),
  listTags: list('tags'),
  getTag: get('tags'),
  listChildTags: listOf('tags', 'tags', (tag, parent) => tag.parent_tag_id === parent.id),
  listAccounts: list('accounts'),
  getAccount: get('accounts'),
  listAccountContacts: listOf('accounts', 'contacts', isOfAccount),
  listChannels: list('channels'),
  getChannel: get('channels'),
  listInboxes: list('inboxes'),
  getInbox: get('inboxes'),
  listInboxChannels: listOf('inboxes', 'channels', (channel, inbox) => channel.inbox_id === inbox.id),
  listLinks: list('links'),
  getLink: get('links'),
  listResponses: list('responses'),
  getResponse: get('responses'),
  listTeammates: list('teammates'),
  getTeammate: get('teammates'),
  listTeammateInboxes: listOf('teammates', 'inboxes', (inbox, { id }) => inbox.teammate_ids.includes(id)),
  listKnowledgeBases: list('knowledge_bases'),
  getKnowledgeBase: get('knowledge_bases'),
  getKnowledgeBaseContent: get('knowledge_bases'),
  listArticles: listOf('knowledge_bases', 'articles', (article, { id }) => article.knowledge_base_id === id),
  getArticle: get('articles'),
  listReports: list('analytics_reports'),
  getReport: get('analytics_reports'),
  listExports: list('analytics_exports'),
  getExport: get('analytics_exports'),

  ...recordHandlers,
  ...channelHandlers,
  ...knowledgeBaseHandlers,
  ...conversationHandlers,
  ...messageHandlers,
  ...outsideMessageHandlers,
};
