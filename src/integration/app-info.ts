/**
 * YOURS: what every page shows. `colour` is #rrggbb; pages keep its hue and choose a lightness that can be read.
 * `logo: '/assets/logo.svg'` shows src/integration/views/assets/logo.svg in place of icon and name. package.json repeats
 * name and description: `npm run init` writes both.
 */
export const APP_INFO = {
  name: 'Partner app',
  description: 'Your contacts and conversations, copied and kept up to date.',
  colour: '#0b6e5f',
  /** Where administrators find help: a mail address or a page. */
  support: 'support@example.com',
};
