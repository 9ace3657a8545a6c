/** A shorter token could stand in a text by chance, in characters. */
const SHORTEST_TOKEN = 12;

/**
 * Whether a text of the service, such as an address or an id, repeats the token that it was asked with, as it is or
 * percent-encoded; tokens are ASCII (RFC 6750, section 2.1).
 */
export function repeatsToken(text: string, token: string): boolean {
  if (token.length < SHORTEST_TOKEN) return false;
  const decoded = text.replace(/%([2-7][\da-f])/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  return text.includes(token) || decoded.includes(token);
}
