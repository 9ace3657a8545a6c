import { z } from 'zod';

/** A schema in JSON Schema, draft 2020-12. */
export type JsonSchema = Record<string, unknown>;

/** `createChildTag`, `message-seen` and `/faults/:id` become `CreateChildTag`, `MessageSeen`, `FaultsId`. */
export function pascalCase(name: string): string {
  return name.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Where a part of the description stands, to refer to it. */
export function refer(kind: 'schemas' | 'headers' | 'parameters' | 'responses', name: string) {
  return { $ref: `#/components/${kind}/${name}` };
}

/** What is sent, in JSON Schema. */
export function sentSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return described;
}

export function content(schema: JsonSchema, mediaType = 'application/json') {
  return { [mediaType]: { schema } };
}

export function requestBody(schema: z.ZodType) {
  return { required: !schema.safeParse({}).success, content: content(sentSchema(schema)) };
}

/** The placeholders of a path of the specification, as parameters. */
export function pathParameters(path: string): object[] {
  const schema = { type: 'string', minLength: 1 };
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true, schema }));
}

/** Rows of a table of routes as `paths`, with placeholders in their form: `/tags/{tag_id}`. */
export function pathItems<Row extends { method: string; path: string }>(
  rows: readonly Row[],
  operation: (row: Row) => object,
) {
  const items: Record<string, Record<string, object>> = {};
  for (const row of rows) {
    const path = row.path.replace(/:(\w+)/g, '{$1}');
    items[path] = { ...items[path], [row.method.toLowerCase()]: operation(row) };
  }
  return items;
}

/** The one form of every error of the API and of the control interface (Errors). */
export const ERROR_SCHEMA = {
  type: 'object',
  properties: {
    _error: {
      type: 'object',
      properties: {
        status: { type: 'integer', minimum: 400, maximum: 599 },
        title: { type: 'string', minLength: 1 },
        message: { type: 'string', minLength: 1 },
      },
      required: ['status', 'title', 'message'],
    },
  },
  required: ['_error'],
};
