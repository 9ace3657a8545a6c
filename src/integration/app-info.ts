/** YOURS: how pages call the app, and where administrators find help. */
export const APP_INFO = { name: 'Partner app', support: 'support@example.com' };
