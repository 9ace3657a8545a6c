/**
 * Where the sandbox is found when nothing else is said, and the OAuth application that it starts with.
 * The configuration takes these as defaults in development, and the sandbox registers them: both sides of one convention.
 */
export const SANDBOX_DEFAULTS = {
  host: '127.0.0.1',
  port: 4010,
  apiPath: '/api',
  authPath: '/auth',
  clientId: 'sandboxpartnerapp',
  /** Not a secret: it opens nothing but the sandbox. Letters and digits alone: many libraries form-encode them. */
  clientSecret: 'notasecretsandboxonly100',
} as const;

/** What has to be said for the sandbox to listen beyond this machine. */
export const EXPOSE_WORDS = 'yes-i-know-it-has-no-password';
