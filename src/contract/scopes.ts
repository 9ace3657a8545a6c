/** The scopes of tokens (Authentication, 9). The specification does not list them: these names are our choice. */
export const SCOPE = {
  /** Read and change what the company's teams share. */
  shared: 'shared_resources',
  /** Read what the company's teams share. */
  sharedRead: 'shared_resources:read',
  /** Private resources of teammates: individual inboxes, tags, signatures. */
  private: 'private_resources',
  /** Knowledge bases and their articles. */
  knowledgeBase: 'knowledge_base',
} as const;

/** A scope's name. */
export type Scope = (typeof SCOPE)[keyof typeof SCOPE];

/** Scopes that an OAuth application may ask for. The others are for API tokens alone (Authentication, 9). */
export const OAUTH_SCOPES = [SCOPE.shared, SCOPE.sharedRead] as const;

/** Name of a scope that an OAuth application may ask for. */
export type OAuthScope = (typeof OAUTH_SCOPES)[number];

/** Which resources a route is about. */
export type Reach = 'shared' | 'knowledge_base';

/** Whether scopes open a route. `SCOPE.private` decides about private records among shared ones. */
export function opens(scopes: readonly string[], reach: Reach, writes: boolean): boolean {
  if (reach === 'knowledge_base') return scopes.includes(SCOPE.knowledgeBase);
  return scopes.includes(SCOPE.shared) || (!writes && scopes.includes(SCOPE.sharedRead));
}
