import { z } from 'zod';
import { customFields, id, links, nonBlank, timestamp } from './common.ts';
import { contact } from './contacts.ts';
import { defineRoutes } from './route.ts';

/** A firm that contacts belong to (Resources, "Account"; all fields but `is_blocked` are our choice). */
export const account = z.looseObject({
  _links: links.extend({ related: z.looseObject({ contacts: z.url() }) }),
  id,
  name: z.string(),
  description: z.string().nullable(),
  domains: z.array(z.string()),
  external_id: z.string().nullable(),
  custom_fields: customFields,
  is_blocked: z.boolean(),
  created_at: timestamp,
  updated_at: timestamp,
});

/** A new account. */
const newAccount = z.looseObject({
  name: nonBlank,
  description: z.string().nullable().optional(),
  domains: z.array(nonBlank).optional(),
  external_id: z.string().nullable().optional(),
  custom_fields: customFields.optional(),
  is_blocked: z.boolean().optional(),
});

/** Changes of an account; `is_blocked` blocks it and unblocks it. */
const accountChanges = newAccount.partial();

export const accountsRoutes = defineRoutes({
  listAccounts: {
    method: 'GET',
    path: '/accounts',
    summary: 'Lists accounts',
    source: 'choice',
    list: true,
    answer: account,
  },
  createAccount: {
    method: 'POST',
    path: '/accounts',
    summary: 'Creates an account',
    source: 'specified',
    body: newAccount,
    status: 201,
    answer: account,
    guard: { guard: 'resource', by: ['account'] },
  },
  getAccount: {
    method: 'GET',
    path: '/accounts/:account_id',
    summary: 'Fetches one account',
    source: 'choice',
    answer: account,
  },
  updateAccount: {
    method: 'PATCH',
    path: '/accounts/:account_id',
    summary: 'Changes an account; can block it',
    source: 'specified',
    body: accountChanges,
    answer: account,
    guard: { guard: 'resource', by: [':account_id'] },
  },
  listAccountContacts: {
    method: 'GET',
    path: '/accounts/:account_id/contacts',
    summary: 'Lists the contacts with a mail address at one of the account’s domains',
    source: 'choice',
    list: true,
    answer: contact,
  },
});
