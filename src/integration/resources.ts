import type { Resource } from '../sync/resource.ts';

/**
 * YOURS: what the app copies. One line adds a list of the service; its records need an `id`. `record` is the route of one
 * record: with it, deletions are known sooner. `columns` are what pages and CSV show, the title first. `intervalMinutes`
 * replaces SYNC_INTERVAL_MINUTES. See docs/resources.md.
 */
export const RESOURCES = [
  {
    name: 'contacts',
    title: 'Contacts',
    route: '/contacts',
    record: '/contacts/:contact_id',
    columns: [
      { title: 'Name', path: 'name' },
      { title: 'Handles', path: 'handles.handle' },
      { title: 'Groups', path: 'groups.name' },
      { title: 'Updated', path: 'updated_at' },
    ],
  },
  {
    name: 'conversations',
    title: 'Conversations',
    route: '/conversations',
    record: '/conversations/:conversation_id',
    columns: [
      { title: 'Subject', path: 'subject' },
      { title: 'Status', path: 'status' },
      { title: 'Assignee', path: 'assignee.name' },
      { title: 'Updated', path: 'updated_at' },
    ],
  },
] as const satisfies readonly Resource[];
