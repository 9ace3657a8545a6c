import type { Resource } from '../sync/resource.ts';

/**
 * YOURS: everything that is synced. To add a resource, add an entry; its records need an `id`, and that is all.
 * Companies that have installed the app begin to sync it within half a minute. `columns` are what pages and CSV show of
 * a record, the title first; `intervalMinutes` takes the place of SYNC_INTERVAL_MINUTES.
 */
export const RESOURCES = [
  {
    name: 'contacts',
    title: 'Contacts',
    route: '/contacts',
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
    columns: [
      { title: 'Subject', path: 'subject' },
      { title: 'Status', path: 'status' },
      { title: 'Assignee', path: 'assignee.name' },
      { title: 'Updated', path: 'updated_at' },
    ],
  },
] as const satisfies readonly Resource[];
