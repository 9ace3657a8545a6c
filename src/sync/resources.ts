/** A kind of record that is copied. */
export interface Resource {
  /** Names it in the database, in addresses and in the status. */
  name: string;
  /** As people read it. */
  title: string;
  /** The paginated list route below `{base_url}`. */
  route: string;
}

/**
 * Everything that is synced. To add a resource, add an entry; its records need an `id`, and that is all.
 * Instances that are installed already begin to sync it at their next sweep.
 */
export const RESOURCES: readonly Resource[] = [
  { name: 'contacts', title: 'Contacts', route: '/contacts' },
  { name: 'conversations', title: 'Conversations', route: '/conversations' },
];
