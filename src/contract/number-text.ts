/**
 * The text of the number that is a document's own `id`, wherever it stands in it: an integer may have more digits than a
 * number has room for. Of several members of that name the last one counts.
 *
 * @param id as JSON.parse reads it
 * @returns undefined when that is no number of the document
 */
export function numberText(document: string, id: number): string | undefined {
  const texts = new Map<unknown, string | undefined>();
  try {
    const root = JSON.parse(document, function (this: unknown, name, value, context?: { source?: string }) {
      if (name === 'id') texts.set(this, context?.source);
      return value;
    });
    return texts.get(root);
  } catch {
    // With a function, JSON.parse recurses: a deep document overflows its stack.
    return Number.isSafeInteger(id) ? String(id) : undefined;
  }
}
