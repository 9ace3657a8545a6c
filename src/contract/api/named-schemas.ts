/** Every schema of the API that has a name of its own. */
export * from './accounts.ts';
export * from './analytics.ts';
export * from './applications.ts';
export * from './channels.ts';
export * from './common.ts';
export * from './contacts.ts';
export * from './conversations.ts';
export * from './identity.ts';
export * from './inboxes.ts';
export * from './knowledge-bases.ts';
export * from './links.ts';
export * from './messages.ts';
export * from './responses.ts';
export * from './tags.ts';
export * from './teammates.ts';
