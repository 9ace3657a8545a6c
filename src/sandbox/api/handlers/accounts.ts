import type { accountsRoutes } from '../../../contract/api/accounts.ts';
import { isOfAccount } from '../../data/accounts.ts';
import { listPage, listWhere } from '../list.ts';
import { type ApiRequest, type Handlers, own, reach, seconds, show } from '../request.ts';

function createAccount(request: ApiRequest<'createAccount'>) {
  const { accounts } = request.tables;
  const at = seconds(request.now);
  const account = accounts.add((id) => ({
    description: null,
    domains: [],
    external_id: null,
    custom_fields: {},
    is_blocked: false,
    ...own(request.body),
    name: request.body.name,
    id,
    created_at: at,
    updated_at: at,
  }));
  return show(request, accounts, account);
}

function updateAccount(request: ApiRequest<'updateAccount'>) {
  const { accounts } = request.tables;
  const account = reach(request, accounts, request.params.account_id);
  const changed = accounts.replace({ ...account, ...own(request.body), updated_at: seconds(request.now) });
  return show(request, accounts, changed);
}

export const accountsHandlers: Handlers<keyof typeof accountsRoutes> = {
  listAccounts: (request) => listPage(request, request.tables.accounts),
  createAccount,
  getAccount: (request) => {
    const { accounts } = request.tables;
    return show(request, accounts, reach(request, accounts, request.params.account_id));
  },
  updateAccount,
  listAccountContacts: (request) => {
    const { accounts, contacts } = request.tables;
    const account = reach(request, accounts, request.params.account_id);
    return listWhere(request, contacts, (contact) => isOfAccount(contact, account));
  },
};
