import type { Resource } from '../sync/resource.ts';

/**
 * YOURS: everything that is synced. To add a resource, add an entry; its records need an `id`, and that is all.
 * Companies that have installed the app begin to sync it within half a minute.
 */
export const RESOURCES = [
  { name: 'contacts', title: 'Contacts', route: '/contacts' },
  { name: 'conversations', title: 'Conversations', route: '/conversations' },
] as const satisfies readonly Resource[];
