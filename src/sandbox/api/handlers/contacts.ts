import type { contactRoutes } from '../../../contract/api/contacts.ts';
import { listPage } from '../list.ts';
import { type Handlers, reach, show } from '../request.ts';

export const contactHandlers: Handlers<keyof typeof contactRoutes> = {
  listContacts: (request) => listPage(request, request.tables.contacts),
  getContact: (request) => {
    const { contacts } = request.tables;
    return show(request, contacts, reach(request, contacts, request.params.contact_id));
  },
};
