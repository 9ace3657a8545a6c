/**
 * Matches a path with a pattern of the specification, like `/contacts/:contact_id`: a placeholder stands for one
 * segment that is not empty.
 *
 * @returns the placeholders' decoded values, or undefined when the path does not match
 */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  if (!pattern.includes(':')) return pattern === path ? {} : undefined;
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [position, segment] of wanted.entries()) {
    const value = given[position] ?? '';
    if (segment.startsWith(':')) {
      const decoded = decode(value);
      if (decoded === undefined || decoded === '') return undefined;
      params[segment.slice(1)] = decoded;
    } else if (segment !== value) {
      return undefined;
    }
  }
  return params;
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
