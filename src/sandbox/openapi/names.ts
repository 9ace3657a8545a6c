/** `createChildTag`, `message-seen` and `knowledge bases` become `CreateChildTag`, `MessageSeen`, `KnowledgeBases`. */
export function pascalCase(name: string): string {
  return name.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** A path with the specification's placeholders in the description's way: `/tags/{tag_id}`. */
export function bracedPath(path: string): string {
  return path.replace(/:(\w+)/g, '{$1}');
}

/** The placeholders of a path of the specification, in order. */
export function placeholders(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
}
