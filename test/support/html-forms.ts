/** A form of a page, as far as a browser without JavaScript would know it. */
export interface HtmlForm {
  /** Absolute. */
  action: URL;
  method: string;
  /** What would be sent if nothing was touched: hidden and filled inputs, checked boxes; no buttons. */
  fields: URLSearchParams;
  /** Everything between its tags. */
  html: string;
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** Finds the forms of a page of ours: well-formed HTML with quoted attributes. */
export function parseForms(html: string, pageUrl: string): HtmlForm[] {
  return [...html.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/gi)].map(([, tag = '', content = '']) => {
    const attributes = parseAttributes(tag);
    return {
      action: new URL(attributes.get('action') ?? '', pageUrl),
      method: (attributes.get('method') ?? 'get').toUpperCase(),
      fields: parseFields(content),
      html: content,
    };
  });
}

function parseFields(html: string): URLSearchParams {
  const fields = new URLSearchParams();
  for (const [, tag = ''] of html.matchAll(/<input\b([^>]*)>/gi)) {
    const attributes = parseAttributes(tag);
    const name = attributes.get('name');
    const type = attributes.get('type') ?? 'text';
    const isChoice = type === 'radio' || type === 'checkbox';
    if (name === undefined || ['submit', 'button', 'image', 'reset'].includes(type)) continue;
    if (isChoice && !attributes.has('checked')) continue;
    fields.append(name, attributes.get('value') ?? (isChoice ? 'on' : ''));
  }
  return fields;
}

function parseAttributes(tag: string): Map<string, string> {
  const attributes = new Map<string, string>();
  for (const [, name = '', double, single, bare] of tag.matchAll(
    /([\w:-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>/]+)))?/g,
  )) {
    attributes.set(name.toLowerCase(), unescapeHtml(double ?? single ?? bare ?? ''));
  }
  return attributes;
}

/** Resolves the entities that escaping functions write. */
export function unescapeHtml(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|([a-z]+));/gi, (all, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name] ?? all;
    return String.fromCodePoint(decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal));
  });
}
