/**
 * YOURS: what every page shows. `colour` is #rrggbb; pages keep its hue and choose a lightness that can be read.
 * `logo: '/assets/logo.svg'` shows views/assets/logo.svg in place of views/assets/icon.svg and the name.
 * package.json repeats name and description.
 */
export const APP_INFO = {
  name: 'Partner app',
  description: 'Your contacts and conversations, copied and kept up to date.',
  colour: '#0b6e5f',
  /** Where administrators find help: a mail address or a page. */
  support: 'support@example.com',
};
