import type { Resource } from '../../src/sync/resource.ts';

/** What the tests have synced, whatever a fork has put into the place of it. */
export const RESOURCES: readonly Resource[] = [
  { name: 'contacts', title: 'Contacts', route: '/contacts' },
  { name: 'conversations', title: 'Conversations', route: '/conversations' },
];
