import type { Resource } from '../../src/sync/resource.ts';

/** What the tests have synced, whatever a fork has put into the place of it. */
export const RESOURCES: readonly Resource[] = [
  { name: 'contacts', title: 'Contacts', route: '/contacts', record: '/contacts/:contact_id' },
  {
    name: 'conversations',
    title: 'Conversations',
    route: '/conversations',
    record: '/conversations/:conversation_id',
  },
];

/** What the tests' pages say of the app. */
export const APP_INFO = {
  name: 'Partner app',
  description: 'Your contacts and conversations, copied and kept up to date.',
  colour: '#0b6e5f',
  support: 'support@example.com',
};
