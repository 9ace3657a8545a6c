import { z } from 'zod';

/** A schema in JSON Schema, draft 2020-12. */
export type JsonSchema = Record<string, unknown>;

/** `createChildTag` and `/faults/:id` become `CreateChildTag` and `FaultsId`. */
export function pascalCase(name: string): string {
  return name.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** A text that is not empty. */
export const text = { type: 'string', minLength: 1 };

/** An object with these members, all of them required. */
export function object(properties: Record<string, object>): JsonSchema {
  return { type: 'object', properties, required: Object.keys(properties) };
}

/** The one form of every error of the API and of the control interface (Errors). */
export const ERROR_SCHEMA = object({
  _error: object({ status: { type: 'integer', minimum: 400, maximum: 599 }, title: text, message: text }),
});

/** Refers to a component. */
export function refer(kind: 'schemas' | 'headers' | 'parameters' | 'responses', name: string | number) {
  return { $ref: `#/components/${kind}/${name}` };
}

export function content(schema: JsonSchema, mediaType = 'application/json') {
  return { [mediaType]: { schema } };
}

/** A description of what is sent. */
export function sentSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return described;
}

export function requestBody(schema: z.ZodType) {
  return { required: !schema.safeParse({}).success, content: content(sentSchema(schema)) };
}

export function parameter(name: string, where: 'query' | 'header', description: string, schema: JsonSchema) {
  return { name, in: where, description, schema };
}

/** The placeholders of a path of the specification, as parameters. */
export function pathParameters(path: string): object[] {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name);
  return names.map((name) => ({ name, in: 'path', required: true, schema: text }));
}

/** Rows of a table of routes as `paths`, with placeholders in their form: `/tags/{tag_id}`. */
export function paths<Row extends { method: string; path: string }>(
  rows: readonly Row[],
  describe: (row: Row) => object,
) {
  const items: Record<string, Record<string, object>> = {};
  for (const row of rows) {
    const path = row.path.replace(/:(\w+)/g, '{$1}');
    items[path] = { ...items[path], [row.method.toLowerCase()]: describe(row) };
  }
  return items;
}
