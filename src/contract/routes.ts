/** OAuth routes, below `{auth_url}` (Endpoints, "OAuth routes"). */
export const OAUTH_ROUTE = { authorize: '/oauth/authorize', token: '/oauth/token' } as const;

/** Where the service sends browsers back to, below PUBLIC_URL: the app's own route, which the sandbox registers. */
export const CALLBACK_PATH = '/oauth/callback';

/** Path of the identity behind a token, below `{base_url}`: our choice, the specification names none. */
export const IDENTITY_PATH = '/me';
