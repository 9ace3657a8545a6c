import type { conversationRoutes } from '../../../contract/api/conversations.ts';
import { listPage } from '../list.ts';
import { type Handlers, reach, show } from '../request.ts';

export const conversationHandlers: Handlers<keyof typeof conversationRoutes> = {
  listConversations: (request) => listPage(request, request.tables.conversations),
  getConversation: (request) => {
    const { conversations } = request.tables;
    return show(request, conversations, reach(request, conversations, request.params.conversation_id));
  },
};
